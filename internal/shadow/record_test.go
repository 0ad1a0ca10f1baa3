package shadow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func sample(at time.Time, paid, planned float64) Sample {
	return Sample{At: at, Nodes: 3, Paid: Price{Machine: paid}, Planned: Price{Machine: planned}, Bound: planned / 2, PlannedNodes: 2}
}

func TestSampleHoldsUntilTheNextOne(t *testing.T) {
	r := NewRecord()
	r.Observe(sample(start, 6, 3), time.Minute)
	for i := 1; i <= 60; i++ {
		r.Observe(sample(start.Add(time.Duration(i)*time.Minute), 6, 3), time.Minute)
	}
	got := r.Since(start)
	if !near(got.Paid.Total(), 6) || !near(got.Planned.Total(), 3) || !near(got.Bound, 1.5) || got.SavedPercent != 50 {
		t.Errorf("an hour at $6 and $3 is %+v", got)
	}
	if len(got.Hours) != 2 || !near(got.Hours[0].Seconds, 1800) || !near(got.Hours[1].Paid.Total(), 3) || !near(got.Hours[0].NodeHours, 1.5) {
		t.Errorf("the hours are %+v", got.Hours)
	}
	if !near(got.WatchedHours, 1) || got.UnwatchedHours > 1e-9 || got.Samples != 61 {
		t.Errorf("watched %v h, unwatched %v h, %d samples", got.WatchedHours, got.UnwatchedHours, got.Samples)
	}
	if half := r.Since(start.Add(time.Hour)); !near(half.Paid.Total(), 3) {
		t.Errorf("the second hour has $%v", half.Paid.Total())
	}
}

// While no shadow watches, neither side pays: the old prices may not hold any more.
func TestGapCountsOnNeitherSide(t *testing.T) {
	r := NewRecord()
	r.Observe(sample(start, 6, 3), time.Minute)
	r.Observe(sample(start.Add(time.Minute), 6, 3), time.Minute)
	r.Observe(sample(start.Add(5*time.Hour), 600, 1), time.Minute)
	r.Observe(sample(start.Add(5*time.Hour+time.Minute), 6, 3), time.Minute)
	got := r.Since(start)
	if !near(got.Paid.Total(), 606./60) || !near(got.Planned.Total(), 4./60) {
		t.Errorf("paid $%v, planned $%v", got.Paid.Total(), got.Planned.Total())
	}
	if !near(got.WatchedHours, 2./60) || !near(got.UnwatchedHours, 5-1./60) {
		t.Errorf("watched %v h, unwatched %v h", got.WatchedHours, got.UnwatchedHours)
	}
}

func TestLongerPauseThatIsUsualIsNoGap(t *testing.T) {
	r := NewRecord()
	r.Observe(sample(start, 6, 3), 10*time.Minute)
	r.Observe(sample(start.Add(10*time.Minute), 6, 3), time.Minute)
	if got := r.Since(start).Paid.Total(); !near(got, 1) {
		t.Errorf("ten minutes at $6 are $%v", got)
	}
}

// Whatever happens for however long, the record fits into its object.
func TestRecordIsBounded(t *testing.T) {
	r := NewRecord()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 24 * 60 {
		at := start.Add(time.Duration(i) * time.Hour)
		s := sample(at, random.Float64(), random.Float64())
		s.Paid.Disk, s.Paid.Node, s.Planned.Disk, s.Bound = random.Float64(), random.Float64(), random.Float64(), random.Float64()
		r.Observe(s, time.Hour)
		p := Purchase{At: at, Pod: fmt.Sprintf("namespace-%d/pod-%d", random.Uint64(), random.Uint64()), PlannedHourly: random.Float64(), First: &at, Placed: &at}
		for range 100 {
			p.Planned = AddMachine(p.Planned, fmt.Sprintf("Standard_D%ds_v5", random.Uint64()))
			p.Bought = AddMachine(p.Bought, fmt.Sprintf("Standard_E%ds_v5", random.Uint64()))
		}
		r.Follow(p)
	}
	if len(r.Hours) != keptHours || len(r.Purchases) != mostPurchases || r.Dropped != 24*60-mostPurchases {
		t.Errorf("%d hours, %d purchases, %d dropped", len(r.Hours), len(r.Purchases), r.Dropped)
	}
	data, err := r.Pack()
	if err != nil || len(data) > MostData {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	back, err := Unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.Since(time.Time{}), r.Since(time.Time{}); !near(got.Paid.Total(), want.Paid.Total()) || len(got.Purchases) != len(want.Purchases) {
		t.Errorf("read back: $%v and %d purchases, want $%v and %d", got.Paid.Total(), len(got.Purchases), want.Paid.Total(), len(want.Purchases))
	}
	if n := r.Purchases[0].Planned; len(n) != mostSizes || n[mostSizes-1] != (Machines{"others", 101 - mostSizes}) {
		t.Errorf("100 machines of as many sizes are %v", n)
	}
}

func TestRecordOfALaterVersionIsRefused(t *testing.T) {
	data, err := (&Record{Form: Form + 1}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(data); err == nil {
		t.Error("it was read")
	}
}
