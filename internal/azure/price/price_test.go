package price

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// script answers requests one after the other.
type script struct {
	answers []*http.Response
	asked   []string
	at      []time.Time
}

func (s *script) Do(r *http.Request) (*http.Response, error) {
	s.asked, s.at = append(s.asked, r.URL.String()), append(s.at, time.Now())
	if len(s.answers) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a, nil
}

func answer(status int, header http.Header, body any) *http.Response {
	text, _ := json.Marshal(body)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(bytes.NewReader(text))}
}

func ok(next string, meters ...meter) *http.Response {
	return answer(http.StatusOK, http.Header{}, page{Items: meters, Next: next})
}

func TestFetchFollowsPagesAndOmitsForeignMeters(t *testing.T) {
	s := &script{answers: []*http.Response{
		ok("https://prices.test/2",
			meter{Size: "Standard_D4s_v5", SKUName: "D4s v5", Price: 0.192, Unit: "1 Hour"},
			meter{Size: "Standard_D4s_v5", SKUName: "D4s v5", ProductName: "Virtual Machines Dsv5 Series Windows", Price: 0.1},
			meter{Size: "Standard_D4s_v5", SKUName: "D4s v5 Low Priority", MeterName: "D4s v5 Low Priority", Price: 0.01},
			meter{Size: "Standard_D4s_v5", SKUName: "D4s v5", ProductName: "Dsv5 Series CloudServices", Price: 0.02}),
		ok("", meter{Size: "Standard_D4s_v5", SKUName: "D4s v5 Spot", Price: 0.05},
			meter{Size: "", SKUName: "nothing", Price: 3}),
	}}
	table, err := NewClient("https://prices.test/1", s, time.Now).Fetch(t.Context(), "eastus")
	if err != nil {
		t.Fatal(err)
	}
	if len(table.OnDemand) != 1 || table.OnDemand["Standard_D4s_v5"] != model.USD(0.192) || table.Spot["Standard_D4s_v5"] != model.USD(0.05) {
		t.Errorf("read %+v", table)
	}
	if len(s.asked) != 2 || !strings.Contains(s.asked[0], "armRegionName+eq+%27eastus%27") || s.asked[1] != "https://prices.test/2" {
		t.Errorf("asked %v", s.asked)
	}
}

func TestFetchRefusesCyclicPages(t *testing.T) {
	m := meter{Size: "Standard_D4s_v5", SKUName: "D4s v5", Price: 0.192}
	s := &script{answers: []*http.Response{ok("https://prices.test/2", m),
		ok("https://prices.test/3", m), ok("https://prices.test/2", m), ok("https://prices.test/3", m)}}
	_, err := NewClient("https://prices.test/1", s, time.Now).Fetch(t.Context(), "eastus")
	if err == nil || !strings.Contains(err.Error(), "the pages do not end: after 3 of them the next is https://prices.test/2") {
		t.Errorf("got %v, want an error that names the page", err)
	}
	if len(s.asked) != 3 {
		t.Errorf("%d pages were asked for, want 3", len(s.asked))
	}
}

func TestTrap2MeterChoiceIgnoresOrder(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	now := func() time.Time { return day(20) }
	meters := []meter{
		{Size: "S", Price: 1, MeterID: "a", EffectiveFrom: day(5)},
		{Size: "S", Price: 2, MeterID: "b", EffectiveFrom: day(1), Primary: true},
		{Size: "S", Price: 3, MeterID: "c", EffectiveFrom: day(9), Primary: true},
		{Size: "S", Price: 4, MeterID: "d", EffectiveFrom: day(9), Primary: true},
		{Size: "S", Price: 0.5, MeterID: "e", EffectiveFrom: day(25), Primary: true},
	}
	for range len(meters) {
		meters = append(meters[1:], meters[0])
		for _, list := range [][]meter{meters, reversed(meters)} {
			table, err := NewClient("https://prices.test", &script{answers: []*http.Response{ok("", list...)}}, now).Fetch(t.Context(), "eastus")
			if err != nil || table.OnDemand["S"] != model.USD(3) {
				t.Fatalf("price %v, %v; want that of the primary meter in force most recently", table.OnDemand["S"], err)
			}
		}
	}
}

func reversed(m []meter) []meter {
	out := slices.Clone(m)
	slices.Reverse(out)
	return out
}

func TestFetchHonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []*http.Response{
			answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"17"}}, nil),
			answer(http.StatusBadGateway, http.Header{}, nil),
			ok("", meter{Size: "S", Price: 1}),
		}}
		if _, err := NewClient("https://prices.test", s, time.Now).Fetch(t.Context(), "eastus"); err != nil {
			t.Fatal(err)
		}
		if pause := s.at[1].Sub(s.at[0]); pause != 17*time.Second {
			t.Errorf("waited %v after 429, want 17s", pause)
		}
	})
}

func TestFetchDoesNotRetryRefusal(t *testing.T) {
	s := &script{answers: []*http.Response{answer(http.StatusBadRequest, http.Header{}, nil), ok("", meter{Size: "S", Price: 1})}}
	if _, err := NewClient("https://prices.test", s, time.Now).Fetch(t.Context(), "eastus"); err == nil || len(s.asked) != 1 {
		t.Errorf("error %v after %d requests, want one request and an error", err, len(s.asked))
	}
}

func TestFetchEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &script{answers: []*http.Response{answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"60"}}, nil)}}
		if _, err := NewClient("https://prices.test", s, time.Now).Fetch(ctx, "eastus"); err == nil || len(s.asked) != 1 {
			t.Errorf("error %v after %d requests", err, len(s.asked))
		}
	})
}

func TestRefreshFailedOrEmptyKeepsPrices(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	b := NewBook(table, "eastus")
	for _, s := range []*script{{answers: []*http.Response{ok("")}},
		{answers: []*http.Response{answer(http.StatusForbidden, http.Header{}, nil)}}} {
		if err := b.Refresh(t.Context(), NewClient("https://prices.test", s, time.Now), "eastus"); err == nil {
			t.Error("the refresh succeeded")
		}
		if got, _ := b.Price("Standard_D4s_v5", model.OnDemand); got != model.USD(0.192) || b.Revision() != 1 {
			t.Errorf("price %v at revision %d, want that of the embedded table", got, b.Revision())
		}
	}
}

func TestRevisionChangesOnlyWithPrices(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	b := NewBook(table, "eastus")
	refresh := func(meters ...meter) {
		t.Helper()
		client := NewClient("https://prices.test", &script{answers: []*http.Response{ok("", meters...)}}, readAt)
		if err := b.Refresh(t.Context(), client, "eastus"); err != nil {
			t.Fatal(err)
		}
	}
	refresh(meter{Size: "Standard_D4s_v5", Price: 0.192})
	if b.Revision() != 1 {
		t.Error("the same prices moved the revision")
	}
	refresh(meter{Size: "Standard_D4s_v5", Price: 0.192}, meter{Size: "Standard_D4s_v5", SKUName: "D4s v5 Spot", Price: 0.04})
	if got, _ := b.Price("Standard_D4s_v5", model.Spot); b.Revision() != 2 || got != model.USD(0.04) ||
		b.Source() != "retail prices of 2026-03-02T12:00:00Z" || b.SpotEstimated() {
		t.Errorf("revision %d, spot %v from %q, estimated %v", b.Revision(), got, b.Source(), b.SpotEstimated())
	}
}

func readAt() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// TestSpotCostsAnEstimateWithoutRetailPrices: at the price of an on-demand machine no spot node
// would be bought, and each would be worth replacing.
func TestSpotCostsAnEstimateWithoutRetailPrices(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, region := range []string{"eastus", "usgovvirginia"} {
		b := NewBook(table, region)
		onDemand, _ := b.Price("Standard_D4s_v5", model.OnDemand)
		spot, _ := b.Price("Standard_D4s_v5", model.Spot)
		if spot <= 0 || spot > onDemand*6/10 {
			t.Errorf("%s: spot %v, on-demand %v; want well below it", region, spot, onDemand)
		}
		if !b.SpotEstimated() || !strings.HasSuffix(b.Source(), "; spot prices are estimates") {
			t.Errorf("%s: estimated %v, source %q", region, b.SpotEstimated(), b.Source())
		}
	}
}

// TestMemoryKeepsRetailPricesOverRestart: a book that starts has the prices that the one before
// had read, until it has read some itself.
func TestMemoryKeepsRetailPricesOverRestart(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	read := func(b *Book, spot float64) {
		t.Helper()
		s := &script{answers: []*http.Response{ok("", meter{Size: "Standard_D4s_v5", Price: 0.2},
			meter{Size: "Standard_New_v9", Price: 0.3}, meter{Size: "Standard_D4s_v5", SKUName: "D4s v5 Spot", Price: spot})}}
		if err := b.Refresh(t.Context(), NewClient("https://prices.test", s, readAt), "eastus"); err != nil {
			t.Fatal(err)
		}
	}
	before := NewBook(table, "eastus")
	if text, err := (Memory{before}).Marshal(); err != nil || len(text) > 0 {
		t.Errorf("a book that has read nothing writes down %q, %v", text, err)
	}
	read(before, 0.07)
	text, err := Memory{before}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	spotOf := func(b *Book) model.Money { m, _ := b.Price("Standard_D4s_v5", model.Spot); return m }
	after, elsewhere, fresh := NewBook(table, "eastus"), NewBook(table, "westeurope"), NewBook(table, "eastus")
	read(fresh, 0.05)
	for _, b := range []*Book{after, elsewhere, fresh} {
		if err := (Memory{b}).Unmarshal(text); err != nil {
			t.Fatal(err)
		}
	}
	if m, _ := after.Price("Standard_New_v9", model.OnDemand); spotOf(after) != model.USD(0.07) || m != model.USD(0.3) || after.SpotEstimated() ||
		after.Source() != "retail prices of 2026-03-02T12:00:00Z, from the snapshot" {
		t.Errorf("after the restart spot costs %v, the new size %v, from %q", spotOf(after), m, after.Source())
	}
	if again, err := (Memory{after}).Marshal(); err != nil || string(again) != string(text) {
		t.Errorf("written down again they are %s, %v; want %s", again, err, text)
	}
	if !elsewhere.SpotEstimated() {
		t.Errorf("the prices of eastus hold in another region, from %q", elsewhere.Source())
	}
	if spotOf(fresh) != model.USD(0.05) {
		t.Errorf("spot costs %v, want what this process has read", spotOf(fresh))
	}
	if err := (Memory{after}).Unmarshal([]byte("{")); err == nil || spotOf(after) != model.USD(0.07) {
		t.Errorf("broken text: %v, spot %v", err, spotOf(after))
	}
}

func TestRegionWithoutPricesUsesNearestOne(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	near, far := NewBook(table, "polandcentral"), NewBook(table, "westeurope")
	got, ok := near.Price("Standard_D4s_v5", model.OnDemand)
	if want, _ := far.Price("Standard_D4s_v5", model.OnDemand); !ok || got != want || want == model.USD(0.192) {
		t.Errorf("price %v, %v; want that of westeurope, %v", got, ok, want)
	}
	if source := near.Source(); !strings.HasSuffix(source, " for westeurope, the nearest region that it has; spot prices are estimates") {
		t.Errorf("source %q", source)
	}
}
