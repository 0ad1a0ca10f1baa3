// Package gzjson packs values as compressed JSON (RFC 1952 and RFC 8259), the form in which
// nap's own objects carry more than fits them as fields.
package gzjson

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// Pack returns the value as compressed JSON.
func Pack(value any) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(value); err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Unpack reads what Pack has written into a pointer. Data that unpack to more than most
// bytes are an error, so that a small object cannot fill the memory of its reader.
func Unpack(data []byte, into any, most int64) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(zip, most)).Decode(into); err != nil {
		return fmt.Errorf("read JSON of at most %d bytes: %w", most, err)
	}
	return nil
}
