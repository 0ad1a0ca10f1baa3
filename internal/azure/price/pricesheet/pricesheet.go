// Package pricesheet reads what a subscription has agreed with Azure, as its owner can
// download it: the price sheet of an Enterprise Agreement or a Microsoft Customer
// Agreement, and the list of reservations. Fields and their meaning:
// learn.microsoft.com/azure/cost-management-billing/dataset-schema, price-sheet-ea and
// price-sheet-mca (version 2023-05-01); REST API Consumption 2023-05-01, Price Sheet; REST
// API Reservations 2022-11-01, Reservation.
//
//   - pricesheet.go: what a sheet says of each meter
//   - rows.go: the forms of a sheet, CSV and JSON, and CSV in a zip archive
//   - reservations.go: reservations
package pricesheet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sheet is what price sheets say of meters.
type Sheet struct {
	// hourly are prices in US dollars an hour, by meter ID in lower case.
	hourly map[string]entry
	// unused counts lines by why they count for nothing, in words.
	unused map[string]int
	// More says that a page of the sheet names a next one.
	More bool
}

// entry is the line that counts for a meter.
type entry struct {
	dollars float64
	tier    float64 // from how many units on it counts
	since   time.Time
	ended   bool // its last day is over, as in the sheet of a month before
}

// consumption reports whether lines of a price type say what use costs; older sheets have no
// such field.
func consumption(priceType string) bool {
	return priceType == "" || strings.EqualFold(priceType, "Consumption")
}

// unitOfHours is how a unit of hours is written, such as "1 Hour" and "100 Hours".
var unitOfHours = regexp.MustCompile(`(?i)^\s*(\d+)\s*hours?\s*$`)

// New is a sheet without lines.
func New() *Sheet { return &Sheet{hourly: map[string]entry{}, unused: map[string]int{}} }

// Read adds what a file says: CSV as the portal gives it, a zip archive of such files, or
// JSON as the API Consumption and az do. now decides which prices count already. Of several lines for a meter the one
// in force counts, of those the one for the first unit, of those the latest. The error names
// the line and the field that is wrong, with its value.
func (s *Sheet) Read(r io.Reader, now time.Time) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	more, err := eachRow(text, func(r row) error {
		if err := s.add(r, now); err != nil {
			return fmt.Errorf("%s: %w", r.where, err)
		}
		return nil
	})
	s.More = s.More || more
	return err
}

// CurrencyError says that a sheet is in another currency than nap plans in.
type CurrencyError struct{ Currency string }

func (e *CurrencyError) Error() string {
	return fmt.Sprintf("currency is %q; nap plans in US dollars: "+
		"give the sheet of a billing account in USD, or state discounts by hand", e.Currency)
}

// add files one line.
func (s *Sheet) add(r row, now time.Time) error {
	meter := strings.ToLower(r.get("meterId"))
	if meter == "" {
		s.unused["without a meter"]++
		return nil
	}
	if kind := r.get("priceType"); !consumption(kind) {
		s.unused["of price type "+kind]++
		return nil
	}
	unit := unitOfHours.FindStringSubmatch(r.get("unitOfMeasure"))
	if unit == nil {
		s.unused["not by the hour"]++
		return nil
	}
	if currency := cmp.Or(r.get("currency"), r.get("currencyCode")); !strings.EqualFold(currency, "USD") {
		return &CurrencyError{Currency: currency}
	}
	price, err := r.number("unitPrice")
	if err != nil {
		return err
	}
	hours, err := strconv.ParseFloat(unit[1], 64)
	if err != nil || hours < 1 {
		return fmt.Errorf("unitOfMeasure is %q; must be hours, such as 1 Hour", r.get("unitOfMeasure"))
	}
	e := entry{dollars: price / hours}
	if r.get("tierMinimumUnits") != "" {
		if e.tier, err = r.number("tierMinimumUnits"); err != nil {
			return err
		}
	}
	if err := e.dates(r, now); err != nil {
		return err
	}
	if e.since.After(now) {
		s.unused["not in force yet"]++
		return nil
	}
	if old, ok := s.hourly[meter]; !ok || e.before(&old) {
		s.hourly[meter] = e
	}
	return nil
}

// dates reads from when on a line counts, and whether its last day, which counts whole, is over.
func (a *entry) dates(r row, now time.Time) (err error) {
	if a.since, err = r.date("effectiveStartDate"); err != nil {
		return err
	}
	end, err := r.date("effectiveEndDate")
	a.ended = !end.IsZero() && now.After(end.AddDate(0, 0, 1))
	return err
}

// before says that a counts rather than b: a line that has ended counts only where no other
// does, because prices mostly go on, and the retail price would be further off. Two lines
// that say different things of the same units and days do not tell which one holds: the
// dearer one promises nothing too cheap.
func (a *entry) before(b *entry) bool {
	if a.ended != b.ended {
		return b.ended
	}
	return cmp.Or(cmp.Compare(a.tier, b.tier), b.since.Compare(a.since), cmp.Compare(b.dollars, a.dollars)) < 0
}

// Hourly is the price of a meter in US dollars an hour; false where the sheet has none.
func (s *Sheet) Hourly(meter string) (float64, bool) {
	e, ok := s.hourly[strings.ToLower(meter)]
	return e.dollars, ok
}

// Ended is how many meters have only prices whose last day is over.
func (s *Sheet) Ended() int {
	n := 0
	for _, e := range s.hourly {
		if e.ended {
			n++
		}
	}
	return n
}

// WhyUnused says how many lines count for nothing, and why; empty where all count.
func (s *Sheet) WhyUnused() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(s.unused)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.unused[why], why))
	}
	return strings.Join(parts, ", ")
}

// errNoSheet says what a file must be.
var errNoSheet = errors.New("it is no price sheet: it must be CSV with the columns meterId, unitPrice, unitOfMeasure and currency " +
	"(or currencyCode), or JSON with pricesheets, as az consumption pricesheet show prints it")

// errPacked says what to do with a sheet in a form that is not read.
var errPacked = errors.New("it is compressed with gzip: unpack it, and give each file of the sheet that was in it")
