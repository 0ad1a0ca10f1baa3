package resourcelist

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decode appends the entries of a page to out, and returns the link to the next page, empty for
// the last one. It closes the body. Where that breaks off, the error is errBrokeOff.
func decode[T any](body io.ReadCloser, out []T) (all []T, next string, err error) {
	source := &source{from: body}
	out, next, err = page(json.NewDecoder(withoutMark(source)), out)
	if err == nil {
		_, _ = io.Copy(io.Discard, body) // a connection that is read to its end serves again
	}
	_ = body.Close()
	if err != nil && (source.failed != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = fmt.Errorf("%w: %w", errBrokeOff, err)
	}
	return out, next, err
}

// errBrokeOff is of a body that does not come to its end.
var errBrokeOff = errors.New("it broke off")

// source remembers the error with which reading a body failed, nil while it has not.
type source struct {
	from   io.Reader
	failed error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// page reads the object that a page is. One of other things than entries is no empty list: who
// believed that would take all machines for gone. One without any field is empty: the SDK's own
// server answers so.
func page[T any](d *json.Decoder, out []T) (all []T, next string, err error) {
	if err := expect(d, '{'); err != nil {
		return out, "", err
	}
	listed, others := false, ""
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return out, "", err
		}
		switch field, _ := name.(string); {
		case strings.EqualFold(field, "value"):
			out, err = entries(d, out)
			listed = true
		case strings.EqualFold(field, "nextLink"):
			err = d.Decode(&next)
		default:
			others += " " + field
			err = d.Decode(&ignored{})
		}
		if err != nil {
			return out, "", err
		}
	}
	if err := expect(d, '}'); err != nil {
		return out, "", err
	}
	if !listed && others != "" {
		return out, "", fmt.Errorf("it is no list: it has no \"value\", but%s", others)
	}
	return out, next, nil
}

// entries appends the entries of an array, or of null, to out.
func entries[T any](d *json.Decoder, out []T) ([]T, error) {
	switch begin, err := d.Token(); {
	case err != nil:
		return out, err
	case begin == nil:
		return out, nil
	case begin != json.Delim('['):
		return out, fmt.Errorf("its \"value\" begins with %v, want [", begin)
	}
	for d.More() {
		var entry T
		if err := d.Decode(&entry); err != nil {
			return out, err
		}
		out = append(out, entry)
	}
	return out, expect(d, ']')
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	switch got, err := d.Token(); {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("it has %v, want %v", got, want)
	}
	return nil
}

// ignored is a value that is not read.
type ignored struct{}

// UnmarshalJSON accepts any value.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// withoutMark leaves out the mark of UTF-8 at the beginning, which some of Azure's services write.
func withoutMark(body io.Reader) io.Reader {
	r := bufio.NewReader(body)
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(len(mark))
	}
	return r
}
