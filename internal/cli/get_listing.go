package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// listing is what nap get lists: rows of one kind.
type listing struct {
	// kind is the plural, single what -o name puts before names.
	kind, single string
	columns      []listColumn
	rows         []listRow
	// assuming is what is assumed where no controller tells, or empty.
	assuming string
	// refused says that objects of files were refused, which standard error tells.
	refused bool
}

// listColumn is a column; wide ones are shown with -o wide and csv.
type listColumn struct {
	head string
	wide bool
}

// listRow is one thing. Its cells are strings, numbers, durations or percentages, nil for
// what is not known.
type listRow struct {
	name   string
	labels map[string]string
	cells  []any
	// object is its form in JSON.
	object any
	// note says beside the table what stands in a column that it does not show, or is empty.
	note string
}

// money is dollars per hour, and so is hourly, which is written with its sign; paid is dollars,
// percentage a share from 0 to 100, sizeName a size without the word that all have.
type (
	money      float64
	hourly     float64
	paid       float64
	percentage int32
	sizeName   string
)

// cellText is a cell for people.
func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case money:
		return fmt.Sprintf("%.3f", float64(v))
	case hourly:
		return dollars(float64(v))
	case sizeName:
		return shortSize(string(v))
	case paid:
		return fmt.Sprintf("%.2f", float64(v))
	case percentage:
		return fmt.Sprintf("%d%%", v)
	case time.Duration:
		return duration.HumanDuration(v)
	case string:
		return cmp.Or(v, "-")
	}
	return fmt.Sprint(v)
}

// cellNumber is a cell as a number, and whether it is one. Durations are in seconds.
func cellNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case money:
		return float64(v), true
	case hourly:
		return float64(v), true
	case paid:
		return float64(v), true
	case percentage:
		return float64(v), true
	case int:
		return float64(v), true
	case time.Duration:
		return v.Seconds(), true
	}
	return 0, false
}

// cellValue is a cell for programs: numbers without a unit, nothing for what is not known.
func cellValue(v any) string {
	if n, is := cellNumber(v); is {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// column finds a column by its head, in any case.
func (l *listing) column(name string) (int, error) {
	at := slices.IndexFunc(l.columns, func(c listColumn) bool { return strings.EqualFold(c.head, name) })
	if at >= 0 {
		return at, nil
	}
	var heads []string
	for _, c := range l.columns {
		heads = append(heads, strings.ToLower(c.head))
	}
	return 0, fmt.Errorf("got column %q, allowed: %s", name, strings.Join(heads, ", "))
}

// called reports whether a row has a name; those of sizes may lack the word that all have.
func (l *listing) called(r *listRow, name string) bool {
	return r.name == name || l.kind == "offers" && sameSize(r.name, name)
}

// keep drops the rows that are not asked for. Of names, each must be there.
func (l *listing) keep(names []string, wanted labels.Selector, filters []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(l.rows, func(r listRow) bool { return l.called(&r, name) }) {
			var near []string
			for i := range l.rows {
				near = append(near, l.rows[i].name)
			}
			return fmt.Errorf("no %s %s; there are %s", l.single, name, cmp.Or(strings.Join(near[:min(3, len(near))], ", "), "none"))
		}
	}
	var tests []func(*listRow) bool
	for _, f := range filters {
		test, err := l.filter(f)
		if err != nil {
			return fmt.Errorf("--filter: %w", err)
		}
		tests = append(tests, test)
	}
	l.rows = slices.DeleteFunc(l.rows, func(r listRow) bool {
		called := func(name string) bool { return l.called(&r, name) }
		return len(names) > 0 && !slices.ContainsFunc(names, called) || !wanted.Matches(labels.Set(r.labels)) ||
			slices.ContainsFunc(tests, func(test func(*listRow) bool) bool { return !test(&r) })
	})
	return nil
}

// filter reads a filter such as cpu<50.
func (l *listing) filter(text string) (func(*listRow) bool, error) {
	at := strings.IndexAny(text, "=!<>")
	if at <= 0 {
		return nil, fmt.Errorf("got %q, must be COLUMN=VALUE, COLUMN!=VALUE, COLUMN<NUMBER or COLUMN>NUMBER", text)
	}
	column, err := l.column(text[:at])
	if err != nil {
		return nil, err
	}
	op, value := text[at:at+1], text[at+1:]
	if op == "!" {
		value = strings.TrimPrefix(value, "=")
	}
	if op == "=" || op == "!" {
		return func(r *listRow) bool {
			cell := r.cells[column]
			same := strings.EqualFold(cellText(cell), value) || cellValue(cell) == value ||
				l.columns[column].head == "SIZE" && sameSize(cellText(cell), value)
			return same == (op == "=")
		}, nil
	}
	bound, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
	if err != nil {
		return nil, fmt.Errorf("got %q, and %q is no number", text, value)
	}
	if !l.hasNumbers(column) {
		return nil, fmt.Errorf("got %q, but column %s has text, which = and != compare", text, strings.ToLower(l.columns[column].head))
	}
	return func(r *listRow) bool {
		n, is := cellNumber(r.cells[column])
		return is && (op == "<" && n < bound || op == ">" && n > bound)
	}, nil
}

// hasNumbers reports whether a column has numbers in it, or nothing at all.
func (l *listing) hasNumbers(column int) bool {
	empty := true
	for i := range l.rows {
		cell := l.rows[i].cells[column]
		if _, is := cellNumber(cell); is {
			return true
		}
		empty = empty && cell == nil
	}
	return empty
}

// sort orders the rows by a column, or by a path in their JSON; numbers by their size.
func (l *listing) sort(by string) error {
	if by == "" {
		return nil
	}
	keys := make([]any, len(l.rows))
	if strings.HasPrefix(by, "{") || strings.HasPrefix(by, ".") {
		found := len(l.rows) == 0
		for i := range l.rows {
			text, err := evaluate(by, l.rows[i].object)
			if err != nil {
				return fmt.Errorf("--sort-by: %w", err)
			}
			keys[i], found = text, found || text != ""
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				keys[i] = money(n)
			}
		}
		if !found {
			return fmt.Errorf("--sort-by: got %s, which no %s here has; -o json shows the fields", by, l.single)
		}
	} else {
		column, err := l.column(by)
		if err != nil {
			return fmt.Errorf("--sort-by: %w", err)
		}
		for i := range l.rows {
			keys[i] = l.rows[i].cells[column]
		}
	}
	order := make([]int, len(l.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, isNumber := cellNumber(keys[x])
		b, both := cellNumber(keys[y])
		if isNumber && both {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(cellText(keys[x]), cellText(keys[y]))
	})
	sorted := make([]listRow, len(order))
	for i, at := range order {
		sorted[i] = l.rows[at]
	}
	l.rows = sorted
	return nil
}

// evaluate is what a JSONPath gives for an object.
func evaluate(template string, object any) (string, error) {
	if !strings.HasPrefix(template, "{") {
		template = "{" + template + "}"
	}
	text, err := json.Marshal(object)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	path := jsonpath.New("nap").AllowMissingKeys(true)
	if err == nil {
		err = path.Parse(template)
	}
	var out strings.Builder
	if err == nil {
		err = path.Execute(&out, plain)
	}
	if err != nil {
		return "", fmt.Errorf("the template %s: %w", template, err)
	}
	return out.String(), nil
}

// items is the listing as a document.
func (l *listing) items() map[string]any {
	items := make([]any, 0, len(l.rows))
	for i := range l.rows {
		items = append(items, l.rows[i].object)
	}
	return map[string]any{"items": items}
}

// write prints the listing in a form.
func (l *listing) write(w io.Writer, form string, noHeaders bool) error {
	if isDocument(form) {
		return writeDocument(w, form, l.items())
	}
	switch form {
	case "name":
		for i := range l.rows {
			if _, err := fmt.Fprintf(w, "%s/%s\n", l.single, l.rows[i].name); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return l.writeCSV(w, noHeaders)
	}
	return l.writeTable(w, form == "wide", noHeaders)
}

func (l *listing) writeCSV(out io.Writer, noHeaders bool) error {
	w := csv.NewWriter(out)
	var rows [][]string
	if !noHeaders {
		var heads []string
		for _, c := range l.columns {
			heads = append(heads, c.head)
		}
		rows = append(rows, heads)
	}
	for i := range l.rows {
		var row []string
		for _, cell := range l.rows[i].cells {
			row = append(row, cellValue(cell))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}

// writeTable writes the columns that fit a screen, or all. Where long names make the table
// wider than a screen, the columns in which no row has anything are left out.
func (l *listing) writeTable(out io.Writer, wide, noHeaders bool) error {
	var text strings.Builder
	if err := l.writeColumns(&text, noHeaders, func(i int) bool { return wide || !l.columns[i].wide }); err != nil {
		return err
	}
	if !wide && columnsOf(text.String()) > screenColumns {
		text.Reset()
		has := func(i int) bool {
			return slices.ContainsFunc(l.rows, func(r listRow) bool { return cellText(r.cells[i]) != cellText(nil) })
		}
		if err := l.writeColumns(&text, noHeaders, func(i int) bool { return !l.columns[i].wide && has(i) }); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// writeColumns writes the columns that are shown.
func (l *listing) writeColumns(out io.Writer, noHeaders bool, shown func(i int) bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cell func(i int) string) {
		var cells []string
		for i := range l.columns {
			if shown(i) {
				cells = append(cells, cell(i))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if !noHeaders {
		line(func(i int) string { return l.columns[i].head })
	}
	for i := range l.rows {
		line(func(j int) string { return cellText(l.rows[i].cells[j]) })
	}
	return w.Flush()
}
