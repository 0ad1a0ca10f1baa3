package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// slow is a launcher that refuses everything, each time after a while.
type slow struct {
	seller
	takes   time.Duration
	refusal *unavailable.Failure
}

func (s *slow) Start(_ context.Context, spec NodeSpec) (Machine, error) {
	time.Sleep(s.takes)
	s.asked = append(s.asked, spec.SKU.Name)
	return Machine{}, s.refusal
}

// many is a purchase of so many sizes of each capacity type, spot first.
func many(count int) Purchase {
	p := purchase()
	p.Candidates = nil
	for _, capacityType := range []model.CapacityType{model.Spot, model.OnDemand} {
		for i := range count {
			name := fmt.Sprintf("Standard_D%d_v5 %s", i, capacityType)
			p.Candidates = append(p.Candidates, Candidate{
				Type: &model.InstanceType{Name: name}, SKU: &instancetype.SKU{Name: name, Family: name},
				Offering: &model.Offering{CapacityType: capacityType, Zone: "eastus-1"},
			})
		}
	}
	return p
}

// One call asks for no more than a plan is good for: five of each capacity type, ten in all,
// and for no longer than its claim lives; and what is refused for another reason than capacity
// would be refused everywhere.
func TestCallEndsBeforeItsPlanIsWorthless(t *testing.T) {
	capacity, other := unavailable.NewFailure("SkuNotAvailable", "", nil), unavailable.NewFailure("SubnetIsFull", "", nil)
	for name, c := range map[string]struct {
		sizes          int
		takes          time.Duration
		refusal        *unavailable.Failure
		spot, onDemand int
	}{
		"few":                {2, 0, capacity, 2, 2},
		"many":               {9, 0, capacity, 5, 5},
		"a minute each":      {9, time.Minute, capacity, 3, 0},
		"not for capacity":   {9, 0, other, 1, 0},
		"half a minute each": {3, 30 * time.Second, capacity, 3, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &slow{takes: c.takes, refusal: c.refusal}
			_, err := buyerOf(t, l).Buy(t.Context(), many(c.sizes))
			var want []string
			for _, k := range many(c.spot).Candidates[:c.spot] {
				want = append(want, k.SKU.Name)
			}
			for _, k := range many(c.onDemand).Candidates[c.onDemand:] {
				want = append(want, k.SKU.Name)
			}
			if !errors.Is(err, c.refusal) || !slices.Equal(l.asked, want) {
				t.Errorf("%s: %v, asked for %v, want %v", name, err, l.asked, want)
			}
		})
	}
	p := many(1)
	extra := *p.Candidates[1].Offering
	extra.CapacityType = "reserved"
	third := p.Candidates[1]
	third.Offering = &extra
	p = many(6)
	p.Candidates = append(p.Candidates, third)
	l := &slow{refusal: capacity}
	if _, err := buyerOf(t, l).Buy(t.Context(), p); err == nil || len(l.asked) != maxAttempts {
		t.Errorf("%v, asked %d times, want %d", err, len(l.asked), maxAttempts)
	}
}

// What is known not to be had is not asked for, nor what a refusal speaks of beside what was
// asked for.
func TestKnownRefusalsAreNotRepeated(t *testing.T) {
	l := &seller{}
	b := buyerOf(t, l)
	p := purchase()
	b.offerings.MarkUnavailable(unavailable.NewFailure("SkuNotAvailable", "", nil), p.Candidates[0].attempt())
	synctest.Test(t, func(t *testing.T) {
		if _, err := b.Buy(t.Context(), p); err != nil || !slices.Equal(l.asked, []string{"Standard_D2s_v5"}) {
			t.Errorf("%v, asked %v, want the size that is to be had", err, l.asked)
		}
	})
}

// An error that says nothing of the offering ends the call: the next would be a guess.
func TestUnknownErrorEndsTheCall(t *testing.T) {
	l := &seller{refuses: map[string]error{"Standard_D8s_v5": errors.New("no answer")}}
	if _, err := buyerOf(t, l).Buy(t.Context(), purchase()); err == nil || len(l.asked) != 1 {
		t.Errorf("%v, asked %v", err, l.asked)
	}
	p := purchase()
	p.Spec = func(Candidate) (NodeSpec, error) { return NodeSpec{}, errors.New("no image") }
	if _, err := buyerOf(t, l).Buy(t.Context(), p); err == nil || len(l.asked) != 1 {
		t.Errorf("%v, asked %v", err, l.asked)
	}
}

// Where calls at once have taken the quota, Azure is not asked, neither first nor again.
func TestTakenQuotaIsNotAskedFor(t *testing.T) {
	l := &seller{refuses: map[string]error{"Standard_D8s_v5": unavailable.NewFailure("RetryableError", "", nil)}}
	b := buyerOf(t, l)
	b.quota.Set([]quota.Line{{Name: "f", Limit: 8}}, time.Now())
	p := purchase()
	c := p.Candidates[0]
	c.Offering.Quotas = []model.QuotaUse{{Quota: "f", Amount: 8}}
	b.quota.Take("another", c.Offering.Quotas)
	tried := tries{ofType: map[model.CapacityType]int{}}
	if _, bought, err := b.try(t.Context(), &p, c, &tried); bought || err != nil || len(l.asked) > 0 {
		t.Errorf("bought %t, %v, asked %v, want nothing", bought, err, l.asked)
	}
	if _, failure, err := b.attemptAgain(t.Context(), NodeSpec{Claim: "general-a", SKU: c.SKU}, c, 0); failure == nil || err != nil || len(l.asked) != 1 {
		t.Errorf("%v, %v, asked %v, want it asked for once", failure, err, l.asked)
	}
}

// A purchase that is watched until it runs says that it runs.
func TestWatchedPurchaseSaysThatItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buyerOf(t, &seller{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); b.watcher.Run(ctx) }()
		began := time.Now()
		m, err := b.Buy(ctx, Purchase{Claim: "general-a", Candidates: purchase().Candidates, Spec: purchase().Spec, Settle: time.Minute})
		if err != nil || m.State != Succeeded || time.Since(began) > 2*time.Second {
			t.Errorf("%+v, %v after %s", m, err, time.Since(began))
		}
		stop()
		<-done
	})
}
