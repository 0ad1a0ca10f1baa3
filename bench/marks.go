package bench

import (
	"bytes"
	"fmt"
	"os"
)

// WriteBetweenMarks replaces what a page has between the lines "<!-- NAME: begin -->" and
// "<!-- NAME: end -->" by a text that ends with a newline. A page without both lines is an
// error.
func WriteBetweenMarks(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->\n", name)
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return fmt.Errorf("%s: has no lines <!-- %s: begin --> and <!-- %s: end -->, between which the table goes", path, name, name)
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%s%s%s%s%s", before, begin, text, end, after), 0o644)
}
