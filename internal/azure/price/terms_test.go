package price

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

func newBook(t *testing.T) *Book {
	t.Helper()
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	b := NewBook(table, "eastus")
	b.adopt(Table{
		OnDemand: map[string]model.Money{"Standard_D4s_v5": model.USD(0.2), "Standard_E4s_v5": model.USD(0.3)},
		Spot:     map[string]model.Money{"Standard_D4s_v5": model.USD(0.04)},
	}, readAt(), "")
	return b
}

func TestParseTermsOfExampleFile(t *testing.T) {
	text, err := os.ReadFile("../../../docs/prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	terms, err := ParseTerms(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(terms.Prices) == 0 || len(terms.Discounts) == 0 || len(terms.Reservations) == 0 || len(terms.SavingsPlans) == 0 {
		t.Errorf("it does not show every kind of entry: %+v", terms)
	}
}

func TestTermsOverrideRetailPrices(t *testing.T) {
	b := newBook(t)
	terms, err := ParseTerms([]byte(`
prices:
- {size: standard_d4s_v5, onDemand: 0.15}
- {size: Standard_Future_v9, onDemand: 1.5}
discounts:
- {sizes: Standard_D*_v5, percent: 50}
- {sizes: "*", capacityType: on-demand, percent: 10}
`))
	if err != nil {
		t.Fatal(err)
	}
	b.SetTerms(terms)
	for _, tt := range []struct {
		size string
		ct   model.CapacityType
		want float64
	}{
		{"Standard_D4s_v5", model.OnDemand, 0.15}, // negotiated wins
		{"Standard_D4s_v5", model.Spot, 0.02},     // the first discount that matches
		{"Standard_E4s_v5", model.OnDemand, 0.27}, // the second
		{"Standard_Future_v9", model.OnDemand, 1.5},
	} {
		if got, ok := b.Price(tt.size, tt.ct); !ok || got != model.USD(tt.want) {
			t.Errorf("%s %s: %v, %t; want $%v", tt.size, tt.ct, got, ok, tt.want)
		}
	}
	if _, ok := b.Price("Standard_Future_v9", model.Spot); ok {
		t.Error("a spot price that nobody gave is known")
	}
}

func TestNamesOfTermsMayBeNumbers(t *testing.T) {
	terms, err := ParseTerms([]byte(`perNode: [{name: 365, hourly: 0.1}]`))
	if err != nil || terms.PerNode[0].Name != "365" {
		t.Errorf("got %+v, %v", terms, err)
	}
	if _, err := ParseTerms([]byte("# nothing but a comment\n")); err != nil {
		t.Error(err)
	}
}

func TestReservationsAndSavingsPlansCoverUpToTheirCount(t *testing.T) {
	b := newBook(t)
	terms, err := ParseTerms([]byte(`
reservations:
- {size: Standard_D4s_v5, count: 2, hourly: 0.09}
savingsPlans:
- {name: team, hourly: 0.25, prices: {Standard_D4s_v5: 0.11, Standard_E4s_v5: 0.2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	b.SetTerms(terms)
	expect := func(when, size, line string, price float64) {
		t.Helper()
		got, use, ok := b.Covered(size)
		if !ok && line == "" {
			return
		}
		if !ok || use.Quota != line || got != model.USD(price) {
			t.Errorf("%s %s is covered %t by %q at %v, want %q at $%v", when, size, ok, use.Quota, got, line, price)
		}
	}
	expect("at first", "Standard_D4s_v5", "reservation of Standard_D4s_v5", 0.09)
	expect("at first", "Standard_E4s_v5", "savings plan team", 0.2)
	expect("at first", "Standard_F4s_v2", "", 0)
	b.Bought("a", "Standard_D4s_v5", model.OnDemand, false)
	b.Bought("s", "Standard_D4s_v5", model.Spot, false) // Azure's reservations do not cover spot
	expect("after one", "Standard_D4s_v5", "reservation of Standard_D4s_v5", 0.09)
	before := b.Revision()
	b.Bought("b", "Standard_D4s_v5", model.OnDemand, false)
	if b.Revision() == before {
		t.Error("the revision does not move when a reservation is used up")
	}
	expect("after two", "Standard_D4s_v5", "savings plan team", 0.11)
	b.Bought("c", "Standard_D4s_v5", model.OnDemand, false)
	b.Bought("d", "Standard_D4s_v5", model.OnDemand, false)
	expect("after four", "Standard_D4s_v5", "", 0)
	expect("after four", "Standard_E4s_v5", "", 0)
	if got := b.Lines(); got[0].Left != 0 || got[1].Left != 30_000 {
		t.Errorf("left are %v, want nothing of the reservation and $0.03 of the plan", got)
	}
	b.Gone("a")
	b.SetMachines(map[string]string{"c": "Standard_D4s_v5"}, b.Change())
	expect("after most are gone", "Standard_D4s_v5", "reservation of Standard_D4s_v5", 0.09)
}

func TestParseTermsErrorNamesFieldAndValue(t *testing.T) {
	for text, want := range map[string]string{
		"\n":                                  "it is empty; write {}",
		`price: []`:                           `price: there is no such field, allowed: prices, discounts, reservations, savingsPlans, perNode`,
		`prices: 3`:                           `prices: got 3, must be a list`,
		`a price`:                             `got "a price", must be a mapping with the fields prices, discounts`,
		`perNode: [{name: a, hourly: cheap}]`: `perNode[0].hourly: got "cheap", must be a number`,
		`prices: [{size: a, spot: 1, instanceType: b}, {size: c, spot: much}]`: "" +
			"prices[0].instanceType: there is no such field, allowed: size, onDemand, spot\nprices[1].spot: got \"much\", must be a number",
		"prices: []\n---\ndiscounts: []":                                `has 2 values, one after the other, must have one`,
		`{"prices":[]} {"prices":[]}`:                                   `has 2 values, one after the other, must have one`,
		"{prices: []}\ndiscounts: []":                                   `what follows its value is neither YAML nor JSON: line 2: begins no document`,
		"perNode: [{name: a, hourly: 1}]\nperNode: []":                  `perNode: is there twice, in its lines 1 and 2: give it once`,
		"perNode: [{name: a, hourly: 1, hourly: 2}]":                    `perNode[0].hourly: is there twice, in its line 1: give it once`,
		`prices: [{size: a}]`:                                           `prices[0]: neither onDemand nor spot is given`,
		`prices: [{onDemand: 1}]`:                                       `prices[0].size: "" is not allowed`,
		`prices: [{size: a, onDemand: -1}]`:                             `prices[0].onDemand: -1 is not allowed; allowed are 0 to 1000`,
		`prices: [{size: a, spot: 1e9}]`:                                `prices[0].spot: 1e+09 is not allowed`,
		`prices: [{size: a, spot: 1}, {size: A, spot: 1}]`:              `prices[1].size: "A" is there twice`,
		`discounts: [{sizes: "[", percent: 5}]`:                         `discounts[0].sizes: "[" is no pattern`,
		`discounts: [{sizes: "*", percent: 0}]`:                         `discounts[0].percent: 0 is not allowed`,
		`discounts: [{sizes: "*", percent: 5, capacityType: reserved}]`: `discounts[0].capacityType: "reserved" is not allowed; allowed are on-demand, spot`,
		`reservations: [{size: a}]`:                                     `reservations[0].count: 0 is not allowed`,
		`reservations: [{size: a, count: 1, hourly: -2}]`:               `reservations[0].hourly: -2`,
		`savingsPlans: [{name: a, hourly: 1}]`:                          `savingsPlans[0].prices: is empty`,
		`savingsPlans: [{name: a, hourly: 1, prices: {b: -1}}]`:         `savingsPlans[0].prices.b: -1`,
		`savingsPlans: [{hourly: 1, prices: {b: 1}}]`:                   `savingsPlans[0].name: ""`,
	} {
		if _, err := ParseTerms([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestTermsFileReloadAndInvalidFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenFile(file, newBook(t)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that does not exist: %v", err)
	}
	write("prices: [{size: Standard_D4s_v5, onDemand: nine}]")
	if _, err := OpenFile(file, newBook(t)); err == nil || !strings.Contains(err.Error(), "onDemand") {
		t.Errorf("a wrong file at the start: %v", err)
	}
	write("prices: [{size: Standard_D4s_v5, onDemand: 0.1}]")
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		f, err := OpenFile(file, b)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		changes := 0
		defer group.Wait()
		defer cancel()
		group.Go(func() { f.Run(ctx, slog.New(slog.DiscardHandler), func() { changes++ }) })
		expect := func(when string, want float64) {
			t.Helper()
			time.Sleep(time.Second)
			if got, _ := b.Price("Standard_D4s_v5", model.OnDemand); got != model.USD(want) {
				t.Errorf("%s the price is %v, want $%v", when, got, want)
			}
		}
		expect("at first", 0.1)
		write("prices: [{size: Standard_D4s_v5, onDemand: 0.125}]")
		expect("after a change", 0.125)
		write("prices: [{size: Standard_D4s_v5, onDemand: twelve}]")
		expect("after a mistake", 0.125)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		expect("after the file is gone", 0.125)
		write("prices: [{size: Standard_D4s_v5, onDemand: 0.25}]")
		expect("after the correction", 0.25)
		if changes != 2 {
			t.Errorf("%d changes were told, want 2", changes)
		}
	})
}
