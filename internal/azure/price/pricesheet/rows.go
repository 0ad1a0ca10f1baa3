package pricesheet

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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

// rowsOf reads a file of either form; more says that it names a next page.
func rowsOf(text []byte) (rows []row, more bool, err error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) // the mark at the front of what Windows writes
	switch {
	case len(text) == 0:
		return nil, false, errNoSheet
	case bytes.HasPrefix(text, []byte("PK\x03\x04")), bytes.HasPrefix(text, []byte("\x1f\x8b")):
		return nil, false, errPacked
	case text[0] == '{' || text[0] == '[':
		return rowsOfJSON(text)
	}
	rows, err = rowsOfCSV(text)
	return rows, false, err
}

// preamble is how many lines may stand before the names of the columns.
const preamble = 20

func rowsOfCSV(text []byte) ([]row, error) {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord, reader.LazyQuotes, reader.TrimLeadingSpace = -1, true, true
	var columns []string
	var rows []row
	for n := 0; ; n++ {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no CSV: %w", err)
		}
		if columns == nil {
			if columns = header(record); columns == nil && n == preamble {
				return nil, errNoSheet
			}
			continue
		}
		line, _ := reader.FieldPos(0)
		r := row{where: fmt.Sprintf("line %d", line), fields: make(map[string]string, len(columns))}
		for i, value := range record[:min(len(record), len(columns))] {
			r.fields[columns[i]] = value
		}
		rows = append(rows, r)
	}
	if columns == nil {
		return nil, errNoSheet
	}
	return rows, nil
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

func rowsOfJSON(text []byte) ([]row, bool, error) {
	type page struct {
		Sheets   []map[string]any `json:"pricesheets"`
		NextLink string           `json:"nextLink"`
	}
	var answer struct {
		page
		Properties page `json:"properties"`
	}
	var list []map[string]any
	var err error
	if text[0] == '[' {
		err = decode(text, &list)
	} else if err = decode(text, &answer); err == nil {
		list = append(answer.Sheets, answer.Properties.Sheets...)
	}
	if err != nil {
		return nil, false, fmt.Errorf("it is no JSON of a price sheet: %w", err)
	}
	if len(list) == 0 {
		return nil, false, errNoSheet
	}
	rows := make([]row, len(list))
	for i, object := range list {
		rows[i] = row{where: fmt.Sprintf("pricesheets[%d]", i), fields: make(map[string]string, len(object))}
		for name, value := range object {
			switch value.(type) {
			case string, json.Number:
				rows[i].fields[plain(name)] = fmt.Sprint(value)
			}
		}
	}
	return rows, answer.NextLink != "" || answer.Properties.NextLink != "", nil
}

// decode keeps numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
