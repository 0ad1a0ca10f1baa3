package pricesheet

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// row is one line of a sheet.
type row struct {
	where  string            // such as "line 12"
	fields map[string]string // by name in lower case, without spaces and signs
}

// get is the value of a field, whose name is as the API Consumption has it.
func (r row) get(field string) string { return strings.TrimSpace(r.fields[plain(field)]) }

// number reads an amount that is 0 or more.
func (r row) number(field string) (float64, error) {
	text := r.get(field)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("%s is %q; must be a number such as 0.096, 0 or more", field, text)
	}
	return n, nil
}

// date reads a day; the zero time where the field is empty.
func (r row) date(field string) (time.Time, error) {
	text := r.get(field)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02", "01/02/2006", "1/2/2006", "1/2/2006 15:04:05", "01/02/2006 15:04:05",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is %q; must be a date such as 2026-11-01", field, text)
}

// plain is the name of a field as all forms of sheets have it: "Meter ID" and meterId are one.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// eachRow hands over the lines of a file of any form, one after the other; a line is good
// until the next one comes. more says that the file names a next page.
func eachRow(text []byte, add func(row) error) (more bool, err error) {
	text = withoutMark(text)
	switch {
	case len(text) == 0:
		return false, errNoSheet
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		return false, eachRowOfZip(text, add)
	case bytes.HasPrefix(text, []byte("\x1f\x8b")):
		return false, errPacked
	case text[0] == '{' || text[0] == '[':
		return eachRowOfJSON(text, add)
	}
	return false, eachRowOfCSV(text, add)
}

// withoutMark is a text without the mark at the front of what Windows writes.
func withoutMark(text []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
}

// maxUnpacked bounds one file of an archive; Azure's have 75 MB at most.
const maxUnpacked = 1 << 30

// eachRowOfZip reads the CSV files of an archive.
func eachRowOfZip(text []byte, add func(row) error) error {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return fmt.Errorf("it is no zip archive: %w; download it again", err)
	}
	files := 0
	for _, f := range archive.File {
		if !strings.EqualFold(path.Ext(f.Name), ".csv") {
			continue
		}
		files++
		if err := eachRowOfPacked(f, add); err != nil {
			return fmt.Errorf("%s in it: %w", f.Name, err)
		}
	}
	if files == 0 {
		return errors.New("the archive has no .csv file: give the price sheet as Azure gives it")
	}
	return nil
}

func eachRowOfPacked(f *zip.File, add func(row) error) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxUnpacked+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxUnpacked:
		return fmt.Errorf("it is larger than %d bytes", maxUnpacked)
	}
	return eachRowOfCSV(withoutMark(text), add)
}

// preamble is how many lines may stand before the names of the columns.
const preamble = 20

func eachRowOfCSV(text []byte, add func(row) error) error {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord, reader.LazyQuotes, reader.TrimLeadingSpace, reader.ReuseRecord = -1, true, true, true
	var columns []string
	r := row{fields: map[string]string{}}
	for n := 0; ; n++ {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is no CSV: %w", err)
		}
		if columns == nil {
			if columns = header(record); columns == nil && n == preamble {
				return errNoSheet
			}
			continue
		}
		line, _ := reader.FieldPos(0)
		r.where = fmt.Sprintf("line %d", line)
		clear(r.fields)
		for i, value := range record[:min(len(record), len(columns))] {
			r.fields[columns[i]] = value
		}
		if err := add(r); err != nil {
			return err
		}
	}
	if columns == nil {
		return errNoSheet
	}
	return nil
}

// header are the names of columns where the record has those that are needed, else nil.
func header(record []string) []string {
	columns := make([]string, len(record))
	has := map[string]bool{}
	for i, name := range record {
		columns[i] = plain(name)
		has[columns[i]] = true
	}
	if has["meterid"] && has["unitprice"] && has["unitofmeasure"] && (has["currency"] || has["currencycode"]) {
		return columns
	}
	return nil
}

func eachRowOfJSON(text []byte, add func(row) error) (more bool, err error) {
	type page struct {
		Sheets   []map[string]any `json:"pricesheets"`
		NextLink string           `json:"nextLink"`
	}
	var answer struct {
		page
		Properties page `json:"properties"`
	}
	var list []map[string]any
	if text[0] == '[' {
		err = decode(text, &list)
	} else if err = decode(text, &answer); err == nil {
		list = append(answer.Sheets, answer.Properties.Sheets...)
	}
	if err != nil {
		return false, fmt.Errorf("it is no JSON of a price sheet: %w", err)
	}
	if len(list) == 0 {
		return false, errNoSheet
	}
	for i, object := range list {
		r := row{where: fmt.Sprintf("pricesheets[%d]", i), fields: make(map[string]string, len(object))}
		for name, value := range object {
			switch value.(type) {
			case string, json.Number:
				r.fields[plain(name)] = fmt.Sprint(value)
			}
		}
		if err := add(r); err != nil {
			return false, err
		}
	}
	return answer.NextLink != "" || answer.Properties.NextLink != "", nil
}

// decode keeps numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
