package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

var morning = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return morning.Add(time.Duration(seconds) * time.Second) }

func seen(name string, launched int, hourly float64) Seen {
	return Seen{
		NodeClaim: name, NodePool: "general", Size: "Standard_D4s_v5", Zone: "eastus-1", CapacityType: "on-demand",
		Launched: at(launched), Planned: hourly, Paid: Cost{Machine: hourly * 0.9, Disk: hourly * 0.1}, End: EndDeleted,
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestMachineCountsFromItsLaunchToItsEnd(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	m := seen("a", 2, 3.6) // a tenth of a cent a second
	b.Observe(&Look{At: at(60), Machines: []Seen{m}})
	m.Paid = Cost{Machine: 7.2}
	b.Observe(&Look{At: at(70), Machines: []Seen{m}})
	b.Observe(&Look{At: at(80), Gone: map[string]time.Time{"a": at(75)}})
	want := 58*0.001 + 15*0.002
	if got := b.Cost().Total(); !near(got, want) {
		t.Errorf("the machine cost $%.4f, want $%.4f", got, want)
	}
	if len(b.Open) != 0 || len(b.Ended) != 1 || !b.Ended[0].Ended.Equal(at(75)) || !near(b.Ended[0].Cost.Total(), want) {
		t.Errorf("the book has %+v", b.Ended)
	}
}

// Machines that are there when the ledger begins count from then: what they cost before is
// in no page.
func TestLedgerCountsNothingBeforeItBegins(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0), Machines: []Seen{seen("old", -86400, 3.6)}})
	b.Observe(&Look{At: at(10), Machines: []Seen{seen("old", -86400, 3.6)}})
	if got := b.Cost().Total(); !near(got, 0.01) {
		t.Errorf("the machine cost $%.4f, want $0.0100", got)
	}
}

// However often the one who keeps the book is killed, and whatever it had not written down,
// all machines that are there still at the next look cost the same, counted once.
func TestKillsLoseAndDoubleNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, want := NewBook(nil), 0.0
		b.Observe(&Look{At: at(0)})
		saved, err := b.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var there []Seen
		now, bought := 0, 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step := rapid.IntRange(1, 100).Draw(t, "seconds")
			want += float64(step*len(there)) * 0.001
			now += step
			if rapid.Bool().Draw(t, "buys") {
				late := rapid.IntRange(0, step).Draw(t, "launched before")
				there = append(there, seen(fmt.Sprint("m", bought), now-late, 3.6))
				bought++
				want += float64(late) * 0.001
			}
			b.Observe(&Look{At: at(now), Machines: there})
			switch rapid.IntRange(0, 2).Draw(t, "then") {
			case 0: // it is written down
				if saved, err = b.Pack(); err != nil {
					t.Fatal(err)
				}
			case 1: // the controller is killed
				if b, err = Unpack(saved); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.Observe(&Look{At: at(now), Machines: there})
		if got := b.Cost().Total(); math.Abs(got-want) > 1e-6 {
			t.Fatalf("the ledger has $%.6f, want $%.6f", got, want)
		}
		if len(b.Open) != bought {
			t.Fatalf("%d machines are in the book, want %d", len(b.Open), bought)
		}
	})
}

func TestSharesAddUp(t *testing.T) {
	b := NewBook([]string{"app", "team"})
	b.Observe(&Look{At: at(0)})
	m := seen("a", 0, 3.6)
	b.Observe(&Look{At: at(0), Machines: []Seen{m}})
	m.Shares = []PodShare{
		{Namespace: "shop", Labels: []string{"web", ""}, Share: 0.5},
		{Namespace: "shop", Labels: []string{"db", "data"}, Share: 0.2},
		{Namespace: "kube-system", Labels: []string{"", ""}, Daemon: true, Share: 0.1},
	}
	b.Observe(&Look{At: at(100), Machines: []Seen{m}})
	m.Starting = true
	b.Observe(&Look{At: at(110), Machines: []Seen{m}})
	r := Sum([]*Book{b}, morning)
	want := map[string]float64{"shop": 0.07, Daemons: 0.01, Idle: 0.02, Starting: 0.01}
	for _, s := range r.Namespaces {
		if !near(s.Cost.Total(), want[s.Name]) {
			t.Errorf("%s cost $%.4f, want $%.4f", s.Name, s.Cost.Total(), want[s.Name])
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("no row for %v", want)
	}
	byKey := map[string]float64{}
	for _, s := range r.Labels {
		byKey[s.Of] += s.Cost.Total()
		if s.Of == "team" && s.Name == None && !near(s.Cost.Total(), 0.05) {
			t.Errorf("pods without the label cost $%.4f, want $0.0500", s.Cost.Total())
		}
	}
	for _, sum := range []float64{byKey["app"], byKey["team"], r.NodePools[0].Cost.Total(), r.Cost.Total()} {
		if !near(sum, 0.11) {
			t.Errorf("a column sums to $%.4f, want $0.1100", sum)
		}
	}
}

func TestPodsShareANodeByWhatTheyRequest(t *testing.T) {
	room := fleet.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 110}
	pod := func(namespace string, cpu, memory int64) *fleet.Pod {
		return &fleet.Pod{Ref: model.PodRef{Namespace: namespace}, Spec: &fleet.PodSpec{Requests: fleet.Amounts{CPU: cpu, Memory: memory}}}
	}
	shares := sharesOf([]*fleet.Pod{pod("a", 2000, 4<<30), pod("b", 0, 0)}, room, nil)
	if !near(shares[0].Share, 0.375) || shares[1].Share != 0 {
		t.Errorf("the shares are %+v, want 0.375 and 0", shares)
	}
	room.Set("nvidia.com/gpu", 1)
	gpu := pod("c", 400, 0)
	gpu.Spec.Requests.Set("nvidia.com/gpu", 1)
	if shares = sharesOf([]*fleet.Pod{gpu}, room, nil); !near(shares[0].Share, 1.1/3) {
		t.Errorf("the share of a pod with the GPU is %.3f, want %.3f", shares[0].Share, 1.1/3)
	}
	if shares = sharesOf([]*fleet.Pod{pod("a", 8000, 32<<30), pod("b", 8000, 32<<30)}, room, nil); shares[0].Share+shares[1].Share > 1+1e-9 {
		t.Errorf("the shares of an overcommitted node are %+v, more than all of it", shares)
	}
}

func TestDayTurnsIntoAPage(t *testing.T) {
	b := NewBook(nil)
	late := 16*3600 - 10 // ten seconds before midnight
	b.Observe(&Look{At: at(late)})
	b.Observe(&Look{At: at(late + 5), Machines: []Seen{seen("a", late, 3.6), seen("b", late, 3.6)}})
	b.Observe(&Look{At: at(late + 8), Machines: []Seen{seen("a", late, 3.6)}, Gone: map[string]time.Time{"b": at(late + 8)}})
	over := b.Observe(&Look{At: at(late + 20), Machines: []Seen{seen("a", late, 3.6)}})
	if over == nil || over.Day != "2026-11-22" || len(over.Open) != 0 || len(over.Ended) != 1 || !near(over.Cost().Total(), 0.016) {
		t.Fatalf("the page that is over is %+v", over)
	}
	if b.Day != "2026-11-23" || len(b.Open) != 1 || len(b.Ended) != 0 || !near(b.Cost().Total(), 0.012) {
		t.Errorf("the new page is %+v", b)
	}
	if r := Sum([]*Book{over, b}, morning); !near(r.Cost.Total(), 0.028) || r.Totals.Machines != 2 {
		t.Errorf("both pages have $%.4f and %d machines", r.Cost.Total(), r.Totals.Machines)
	}
	if r := Sum([]*Book{over, b}, morning.AddDate(0, 0, 1)); !near(r.Cost.Total(), 0.012) {
		t.Errorf("the second day has $%.4f", r.Cost.Total())
	}
	// The controller has been away since.
	if r := Sum([]*Book{over, b}, morning.AddDate(0, 0, 3)); r.To != at(late+20) || !near(r.HourlyCost.Total(), 3.6) || r.Cost.Total() != 0 {
		t.Errorf("a later day reaches to %v, at $%.4f per hour for $%.4f", r.To, r.HourlyCost.Total(), r.Cost.Total())
	}
}

// A page holds 5,000 machines and whatever ends on a day, with names that do not compress.
func TestPageIsBounded(t *testing.T) {
	b := NewBook([]string{"app", "team", "owner", "stage"})
	word := func() string {
		var raw [6]byte
		rand.Read(raw[:])
		return hex.EncodeToString(raw[:])
	}
	look := &Look{At: at(0)}
	b.Observe(look)
	for i := range 5000 {
		m := seen("general-"+word(), i, float64(i%977)/100)
		m.Shares = []PodShare{{Namespace: word(), Labels: []string{word(), word(), word(), word()}, Share: 0.5}}
		look.Machines = append(look.Machines, m)
	}
	look.At = at(9000)
	b.Observe(look)
	look.At = at(9100)
	b.Observe(look)
	for i := range 30000 {
		m := Machine{NodeClaim: "general-" + word(), NodePool: fmt.Sprint("pool", i%5), Launched: at(i), Cost: Cost{Machine: float64(i) / 977}}
		b.Ended = append(b.Ended, m)
	}
	before := 0.0
	for i := range b.Ended {
		before += b.Ended[i].Cost.Total()
	}
	data, err := b.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > MostData {
		t.Errorf("a page has %d bytes, allowed are %d", len(data), MostData)
	}
	back, err := Unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	after, machines := 0.0, len(back.Ended)
	for i := range back.Ended {
		after += back.Ended[i].Cost.Total()
	}
	for _, f := range back.Folded {
		after, machines = after+f.Cost.Total(), machines+f.Machines
	}
	if machines != 30000 || math.Abs(after-before) > 1e-3 || len(back.Open) != 5000 {
		t.Errorf("the page has %d machines that ended for $%.3f and %d that are there, want 30000 for $%.3f and 5000", machines, after, len(back.Open), before)
	}
	if len(back.Namespaces) > mostRows || len(back.Labels) > mostRows {
		t.Errorf("the page has %d rows of namespaces and %d of labels", len(back.Namespaces), len(back.Labels))
	}
}

// Azure bills a machine until it is gone, and the NodeClaim goes some seconds later.
func TestMachineThatWentBeforeItsNodeClaimIsGivenBack(t *testing.T) {
	b := NewBook(nil)
	b.Observe(&Look{At: at(0)})
	b.Observe(&Look{At: at(60), Machines: []Seen{seen("a", 0, 3.6), seen("b", 0, 3.6)}})
	b.Observe(&Look{At: at(65), Machines: []Seen{seen("b", 0, 3.6)}, Gone: map[string]time.Time{"a": at(56)}})
	if cost := b.Cost().Total(); math.Abs(cost-0.001*(56+65)) > 1e-9 || !b.Ended[0].Ended.Equal(at(56)) {
		t.Errorf("56 s and 65 s at a tenth of a cent cost $%.6f, the first ended at %v", cost, b.Ended[0].Ended)
	}
	// A time an hour before is not believed.
	b.Observe(&Look{At: at(70), Gone: map[string]time.Time{"b": at(-3600)}})
	if cost := b.Cost().Total(); math.Abs(cost-0.001*(56+65)) > 1e-9 {
		t.Errorf("after that it is $%.6f", cost)
	}
}
