package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadRecord reads what earlier runs have measured, in JSON, into a record. A file that does
// not exist leaves the record as it is.
func ReadRecord(path string, record any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	if err := json.Unmarshal(text, record); err != nil {
		return fmt.Errorf("read the record %s: %w", path, err)
	}
	return nil
}

// WriteRecord writes a record so that a diff shows what a run has changed.
func WriteRecord(path string, record any) error {
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return fmt.Errorf("write the record %s: %w", path, err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
