package launch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// single is a launcher of one machine, which is gone as soon as it is to be deleted.
type single struct {
	Launcher
	machine  Machine
	deleted  int
	finished []string
}

func (s *single) Finish(_ context.Context, m Machine) error {
	s.finished = append(s.finished, m.Claim)
	return nil
}

func (s *single) Get(context.Context, string) (Machine, error) { return s.machine, nil }

func (s *single) Delete(context.Context, string) error {
	s.deleted++
	return ErrNotFound
}

func twoSizes() []instancetype.SKU {
	return []instancetype.SKU{{Name: "Standard_D8s_v5", Family: "f", VCPUs: 8}, {Name: "Standard_D2s_v5", Family: "f", VCPUs: 2}}
}

// buyerOf is a buyer of a launcher's machines in a region that sells two sizes of a family.
func buyerOf(t *testing.T, l Launcher) *Buyer {
	t.Helper()
	metrics, err := NewMetrics(nil, "eastus", true)
	if err != nil {
		t.Fatal(err)
	}
	offerings, q := unavailable.New(time.Now), quota.NewTracker(time.Now)
	c := instancetype.New(instancetype.Region{Name: "eastus"}, instancetype.Market{Unavailable: offerings, Quota: q})
	c.SetSKUs(twoSizes())
	w := NewWatcher(l, c, offerings, q, Reporting{Metrics: metrics, Boots: NewBoots(), Log: slog.New(slog.DiscardHandler)})
	return NewBuyer(l, w, c, offerings, q)
}

// A call that was refused removes what it left behind. A machine that lives under the same
// name is another process's: it is followed instead.
func TestRefusedCallSparesMachineOfAnotherProcess(t *testing.T) {
	for state, spared := range map[State]bool{Creating: true, Succeeded: true, Failed: false, Deleting: false} {
		l := &single{machine: Machine{Claim: "general-a", State: state}}
		b := buyerOf(t, l)
		b.tidy(t.Context(), "general-a")
		if followed := b.watcher.pending["general-a"] != nil; followed != spared || (l.deleted == 0) != spared {
			t.Errorf("%s: followed %t, deleted %d times; want it spared: %t", state, followed, l.deleted, spared)
		}
	}
}

// A machine that goes is not watched any more: the watcher would give the claim up for it
// while another one is bought.
func TestMachineOfEarlierCallThatGoesIsNotWatched(t *testing.T) {
	l := &single{machine: Machine{Claim: "general-a", State: Deleting}}
	b := buyerOf(t, l)
	b.watcher.Follow(l.machine)
	if _, err := b.existing(t.Context(), "general-a"); !errors.Is(err, ErrNotFound) || l.deleted != 1 {
		t.Errorf("%v, deleted %d times, want the name to be free", err, l.deleted)
	}
	if b.watcher.pending["general-a"] != nil {
		t.Error("the machine is still watched")
	}
}

func TestTooDearSaysWhatCameBefore(t *testing.T) {
	dear := &TooDear{Most: model.USD(1), Next: Candidate{
		Type: &model.InstanceType{Name: "Standard_D4s_v5"}, Offering: &model.Offering{CapacityType: model.OnDemand, Price: model.USD(2)},
	}}
	for why, failure := range map[string]*unavailable.Failure{
		"what was planned cannot be bought any more":           nil,
		"Azure refused what was planned with AllocationFailed": unavailable.NewFailure("AllocationFailed", "", nil),
	} {
		want := "planned again: " + why + ", and Standard_D4s_v5 on-demand at $2.000/h costs more than $1.000/h"
		if dear.Failure = failure; dear.Error() != want {
			t.Errorf("got %q, want %q", dear, want)
		}
	}
}

// What is wrong with an extension is told even where its message is in no known form; what
// is wrong with a machine is no failure of its boot.
func TestBootFailureInErrorsOfAzure(t *testing.T) {
	for name, c := range map[string]struct {
		code, message, text string
		exit                int
		is                  bool
	}{
		"no known form":  {"VMExtensionProvisioningError", "It did\n  not end.", "VMExtensionProvisioningError: It did not end.", 0, true},
		"of the machine": {"AllocationFailed", "No capacity.", "", 0, false},
		"ended well":     {"AllocationFailed", `[stdout]{ "ExitCode": "0", "Output": "", "Error": "" }[stderr]`, "", 0, false},
	} {
		if f, is := BootFailureIn(c.code, c.message); is != c.is || f.Text != c.text || f.ExitCode != c.exit {
			t.Errorf("%s: %+v, %t", name, f, is)
		}
	}
}

// rival is a launcher that has a machine of another process, or refuses once.
type rival struct {
	single
	refusal error
	again   []bool
}

func (r *rival) Start(_ context.Context, s NodeSpec) (Machine, error) {
	r.again = append(r.again, s.Again)
	err := r.refusal
	r.refusal = nil
	return r.machine, err
}

// Where another process has chosen a larger machine, its cores are those that are gone.
func TestMachineOfAnotherProcessDrawsItsOwnQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &rival{single: single{machine: Machine{Claim: "general-a", Size: "Standard_D8s_v5", CapacityType: model.OnDemand}}}
		b := buyerOf(t, l)
		b.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
		if _, _, err := b.attempt(t.Context(), NodeSpec{Claim: "general-a", SKU: &twoSizes()[1]}, time.Second); err != nil {
			t.Fatal(err)
		}
		if b.quota.Take("another", []model.QuotaUse{{Quota: "f", Amount: 3}}) {
			t.Error("3 cores of 10 can be had beside a machine of 8")
		}
	})
}

// What is asked for once more after a refusal that passes has waited long enough.
func TestSecondAttemptSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &rival{single: single{machine: Machine{Claim: "general-a"}}, refusal: unavailable.NewFailure("RetryableError", "", nil)}
		b := buyerOf(t, l)
		c := Candidate{Offering: &model.Offering{}}
		_, failure, err := b.attemptAgain(t.Context(), NodeSpec{Claim: "general-a", SKU: &twoSizes()[1]}, c, time.Second)
		if err != nil || failure != nil || !slices.Equal(l.again, []bool{false, true}) {
			t.Errorf("%v, %v, attempts %v, want a first and a second one", failure, err, l.again)
		}
	})
}

func TestBootFailureEndsWithItsMachine(t *testing.T) {
	b := NewBoots()
	b.Failed("general-a", BootFailure{Text: "No route."})
	if _, known := b.Of("general-a"); !known {
		t.Error("it is not known")
	}
	b.Forget("general-a")
	if f, known := b.Of("general-a"); known {
		t.Errorf("still known is %+v", f)
	}
}

// seller is a launcher that refuses sizes, each with an error, and sells all others at once.
type seller struct {
	Launcher
	refuses map[string]error
	sold    *Machine
	asked   []string
	deleted int
}

func (s *seller) Get(context.Context, string) (Machine, error) {
	if s.sold == nil {
		return Machine{}, ErrNotFound
	}
	return *s.sold, nil
}

func (s *seller) Start(_ context.Context, spec NodeSpec) (Machine, error) {
	name := spec.SKU.Name
	if spec.Again {
		name += " again"
	}
	s.asked = append(s.asked, name)
	if err := s.refuses[spec.SKU.Name]; err != nil {
		return Machine{}, err
	}
	m := Machine{Claim: spec.Claim, Size: spec.SKU.Name, State: Creating, CapacityType: spec.CapacityType}
	runs := m
	runs.State = Succeeded
	s.sold = &runs
	return m, nil
}

func (s *seller) List(context.Context) ([]Machine, error) { return nil, nil }

func (s *seller) Delete(context.Context, string) error {
	s.deleted++
	return ErrNotFound
}

// purchase is one of both sizes, the large one first, at $1 and $2 an hour.
func purchase() Purchase {
	var candidates []Candidate
	for i, sku := range twoSizes() {
		candidates = append(candidates, Candidate{
			Type: &model.InstanceType{Name: sku.Name}, SKU: &sku,
			Offering: &model.Offering{CapacityType: model.OnDemand, Price: model.USD(float64(i + 1)), Zone: "eastus-1"},
		})
	}
	spec := func(c Candidate) (NodeSpec, error) {
		return NodeSpec{Claim: "general-a", SKU: c.SKU, CapacityType: c.Offering.CapacityType}, nil
	}
	return Purchase{Claim: "general-a", Candidates: candidates, Spec: spec, Settle: time.Second}
}

// What is left costs more than the machine may: that says what it is, and why the plan fails.
func TestBuyerStopsAtTheMostThatMachineMayCost(t *testing.T) {
	l := &seller{refuses: map[string]error{"Standard_D8s_v5": unavailable.NewFailure("SkuNotAvailable", "", nil)}}
	p, most := purchase(), model.USD(1.5)
	p.MostPrice = &most
	_, err := buyerOf(t, l).Buy(t.Context(), p)
	var dear *TooDear
	if !errors.As(err, &dear) || dear.Next.SKU.Name != "Standard_D2s_v5" || dear.Most != most ||
		dear.Failure == nil || dear.Failure.Code != "SkuNotAvailable" {
		t.Errorf("got %v, want that the second size is too dear", err)
	}
	if !slices.Equal(l.asked, []string{"Standard_D8s_v5"}) {
		t.Errorf("asked for %v, want what costs no more than it may", l.asked)
	}
}

// A machine that an earlier call or process has bought is not bought again, and is followed
// as long as something is left to do. One that failed goes, and what it was is not offered.
func TestMachineOfEarlierCallIsNotBoughtAgain(t *testing.T) {
	failure := unavailable.NewFailure("AllocationFailed", "", nil)
	for name, c := range map[string]struct {
		state           State
		missing         []string
		failure         *unavailable.Failure
		found, followed bool
	}{
		"it runs":                     {Succeeded, nil, nil, true, false},
		"it runs and lacks a thing":   {Succeeded, []string{"cse"}, nil, true, true},
		"it is being made":            {Creating, nil, nil, true, true},
		"a later change of it failed": {Failed, nil, nil, true, false},
		"it failed":                   {Failed, nil, failure, false, false},
	} {
		m := Machine{Claim: "general-a", Size: "Standard_D8s_v5", State: c.state, Missing: c.missing, CapacityType: model.OnDemand}
		l := &failing{single{machine: m}, c.failure}
		b := buyerOf(t, l)
		b.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
		b.quota.Take(ResourceName("general-a"), []model.QuotaUse{{Quota: "f", Amount: 8}})
		got, err := b.existing(t.Context(), "general-a")
		if (err == nil) != c.found || (got.Claim != "") != c.found || errors.Is(err, ErrNotFound) == c.found || (l.deleted == 0) != c.found {
			t.Errorf("%s: %+v, %v, deleted %d times; want it found: %t", name, got, err, l.deleted, c.found)
		}
		if followed := b.watcher.pending["general-a"] != nil; followed != c.followed {
			t.Errorf("%s: followed %t, want %t", name, followed, c.followed)
		}
		if n, _ := b.quota.Left("f"); (n == 10) == c.found {
			t.Errorf("%s: %d cores are left", name, n)
		}
		if why, _ := b.offerings.Unavailable(&twoSizes()[0], instancetype.ZoneLabel("eastus", ""), model.OnDemand); (why == "") != c.found {
			t.Errorf("%s: unavailable because of %q", name, why)
		}
	}
}

// What Azure refuses gives its quota back, and leaves nothing behind. A call that was given
// up does not know what Azure did.
func TestRefusedMachineGivesItsQuotaBack(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		left int64
	}{
		"refused":                 {t.Context(), unavailable.NewFailure("SkuNotAvailable", "", nil), 10},
		"no answer":               {t.Context(), errors.New("no answer"), 10},
		"given up":                {ended, context.Canceled, 2},
		"refused before given up": {ended, unavailable.NewFailure("SkuNotAvailable", "", nil), 10},
	} {
		b := buyerOf(t, &seller{refuses: map[string]error{"Standard_D8s_v5": c.err}})
		b.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
		b.quota.Take(ResourceName("general-a"), []model.QuotaUse{{Quota: "f", Amount: 8}})
		_, failure, err := b.attempt(c.ctx, NodeSpec{Claim: "general-a", SKU: &twoSizes()[0]}, time.Second)
		if (failure == nil) == (err == nil) {
			t.Errorf("%s: %v, %v, want one of them", name, failure, err)
		}
		if n, _ := b.quota.Left("f"); n != c.left {
			t.Errorf("%s: %d cores left, want %d", name, n, c.left)
		}
	}
}

// The next candidate is asked for after a refusal, as a second choice, and what Azure has
// accepted is billed from now on.
func TestBuyerTakesTheNextAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &seller{refuses: map[string]error{"Standard_D8s_v5": unavailable.NewFailure("SkuNotAvailable", "", nil)}}
		b := buyerOf(t, l)
		m, err := b.Buy(t.Context(), purchase())
		if err != nil || m.Size != "Standard_D2s_v5" || m.Created.IsZero() || !slices.Equal(l.asked, []string{"Standard_D8s_v5", "Standard_D2s_v5 again"}) {
			t.Errorf("%+v, %v, asked %v", m, err, l.asked)
		}
		if _, err := b.Buy(t.Context(), purchase()); err != nil || len(l.asked) != 2 {
			t.Errorf("once more: %v, asked %v, want the machine that it has", err, l.asked)
		}
	})
}

// A call that gets nothing says how often it has asked and why, and removes what is left.
func TestRefusedBuyerSaysWhatItHasTried(t *testing.T) {
	refusal := unavailable.NewFailure("SkuNotAvailable", "", nil)
	l := &seller{refuses: map[string]error{"Standard_D8s_v5": refusal, "Standard_D2s_v5": refusal}}
	_, err := buyerOf(t, l).Buy(t.Context(), purchase())
	var refused *Refused
	if !errors.As(err, &refused) || refused.Attempts != 2 || refused.Claim != "general-a" || !errors.Is(err, refusal) || l.deleted != 1 {
		t.Errorf("%v, deleted %d times", err, l.deleted)
	}
	p := purchase()
	p.Candidates = nil
	if _, err := buyerOf(t, l).Buy(t.Context(), p); !errors.Is(err, ErrNoCandidate) || l.deleted != 1 {
		t.Errorf("nothing to ask for: %v, deleted %d times", err, l.deleted)
	}
}
