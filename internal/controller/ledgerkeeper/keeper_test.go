package ledgerkeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/ledger"
	"github.com/nodeautoprovision/nap/internal/model"
)

// shop sells one size, with a disk of $0.36/h in its price, and counts how often it was asked.
type shop struct {
	asked *int
	price *float64
}

func (s shop) Catalog(context.Context, string) (*fleet.Catalog, error) {
	*s.asked++
	return &fleet.Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{
		Name: "Standard_D4s_v5", Offerings: []model.Offering{{
			Zone: "eastus-1", CapacityType: model.OnDemand, Price: model.USD(*s.price), DiskPrice: model.USD(0.36), Available: true,
		}},
	}}}, nil
}

// cluster is what keepers look at and write to.
type cluster struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	store *fleet.Store
	kube  client.WithWatch
	// fails is what the next writes return.
	fails error
	// looks is how often the catalogue was read, price what it has, $3.60/h at first, and
	// market how often that has changed.
	looks  int
	price  float64
	market uint64
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)), store: fleet.NewStore(), price: 3.6}
	c.kube = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, kube client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return errors.Join(c.fails, kube.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, kube client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if c.fails != nil {
				return c.fails
			}
			return kube.Update(ctx, o, opts...)
		},
	}).Build()
	c.store.Put(&fleet.Pool{Name: "general", NodeLimit: -1, Ready: true})
	return c
}

func (c *cluster) keeper() *Keeper {
	return &Keeper{Reader: c.kube, Writer: c.kube, Clock: c.clock, Fleet: c.store.Snapshot, Catalogs: shop{&c.looks, &c.price}, Market: func() uint64 { return c.market }}
}

// keep lets time pass and a keeper look.
func (c *cluster) keep(k *Keeper, after time.Duration) {
	c.t.Helper()
	c.clock.Step(after)
	if err := k.Keep(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) buy(name string) *fleet.Claim {
	claim := &fleet.Claim{
		Name: name, Pool: "general", ProviderID: "azure://" + name, Created: c.clock.Now(), Launched: c.clock.Now(), Planned: model.USD(3),
		Labels:   map[string]string{model.LabelInstanceType: "Standard_D4s_v5", model.LabelZone: "eastus-1", model.LabelCapacityType: "on-demand"},
		Capacity: fleet.Amounts{CPU: 4000, Memory: 1 << 34}, Allocatable: fleet.Amounts{CPU: 4000, Memory: 1 << 34},
	}
	c.store.Put(claim)
	return claim
}

func (c *cluster) report() *ledger.Report {
	c.t.Helper()
	books, err := Read(c.t.Context(), c.kube)
	if err != nil {
		c.t.Fatal(err)
	}
	return ledger.Sum(books, c.clock.Now().AddDate(0, 0, -40))
}

func (c *cluster) costs(want float64) {
	c.t.Helper()
	if got := c.report().Cost.Total(); math.Abs(got-want) > 1e-9 {
		c.t.Errorf("the ledger has $%.6f, want $%.6f", got, want)
	}
}

func TestLedgerOutlivesItsKeeper(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	c.buy("a")
	b := c.buy("b")
	c.keep(k, 5*time.Second) // written down: two are new
	c.keep(k, 5*time.Second) // not written down
	k = c.keeper()           // the first one was killed
	c.keep(k, 50*time.Second)
	c.store.Remove(b)
	c.clock.Step(3 * time.Second)
	k.Gone("b", c.clock.Now())
	c.keep(k, 2*time.Second)
	c.keep(k, time.Minute)
	c.costs((125 + 63) * 0.001)
	r := c.report()
	if len(r.Purchases) != 2 || r.Purchases[1].Ended == nil || r.Totals.Planned != 6 || math.Abs(r.Totals.Paid-7.2) > 1e-9 {
		t.Errorf("the purchases are %+v, the totals %+v", r.Purchases, r.Totals)
	}
	if disk := r.Cost.Disk; math.Abs(disk-0.0188) > 1e-9 {
		t.Errorf("disks cost $%.6f, want $0.018800", disk)
	}
}

// The leader that was stopped wakes up and does not know it: its page is refused, it reads
// what the other wrote, and nothing is counted twice.
func TestTwoLeadersCountOnce(t *testing.T) {
	c := newCluster(t)
	first, second := c.keeper(), c.keeper()
	c.keep(first, 0)
	c.buy("a")
	c.keep(first, time.Minute)
	c.keep(second, time.Minute)
	c.clock.Step(time.Minute)
	if err := first.Keep(t.Context()); !apierrors.IsConflict(err) {
		t.Fatalf("the page of an earlier leader was answered with %v, want a conflict", err)
	}
	c.keep(first, time.Minute)
	c.costs(4 * 60 * 0.001)
}

func TestWriteThatFailsIsMadeUpFor(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	c.buy("a")
	c.fails = errors.New("the API server is out")
	for range 5 {
		c.clock.Step(time.Minute)
		if k.Keep(t.Context()) == nil {
			t.Fatal("no error")
		}
	}
	c.fails = nil
	c.keep(k, time.Minute)
	c.costs(6 * 60 * 0.001)
}

func TestLedgerIsWrittenOnChangeOrOnceAMinute(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	version := func() string {
		var page v1alpha1.LedgerPage
		if err := c.kube.Get(t.Context(), client.ObjectKey{Name: v1alpha1.LedgerName}, &page); err != nil {
			t.Fatal(err)
		}
		return page.ResourceVersion
	}
	writes, last := 0, version()
	for range 120 {
		c.keep(k, every)
		if now := version(); now != last {
			writes, last = writes+1, now
		}
	}
	if writes != 10 {
		t.Errorf("in ten quiet minutes the page was written %d times, want 10", writes)
	}
	c.buy("a")
	c.keep(k, every)
	if version() == last {
		t.Error("a purchase was not written down at once")
	}
}

// Pages are kept for 30 days at least, and their number is bounded.
func TestPagesAreKeptForAMonth(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	c.buy("a")
	for range 100 * 4 {
		c.keep(k, 6*time.Hour)
	}
	var pages v1alpha1.LedgerPageList
	if err := c.kube.List(t.Context(), &pages); err != nil {
		t.Fatal(err)
	}
	if n := len(pages.Items); n < 31 || n > keptDays+2 {
		t.Errorf("after 100 days there are %d pages", n)
	}
	// Looks are at 2, 8, 14 and 20 o'clock: the last page has what two of them counted.
	c.costs(3600 * 0.001 * (24*float64(len(pages.Items)-1) + 12))
}

// A kill between the page of the day that is over and the one of the new day repeats the
// former.
func TestKillAtMidnightCountsOnce(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	c.buy("a")
	c.keep(k, 16*time.Hour-time.Minute)
	c.clock.Step(2 * time.Minute)
	over := false
	killed := interceptor.NewClient(c.kube, interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
		over = true
		return errors.New("killed")
	}})
	k.Writer = killed
	if err := k.Keep(t.Context()); err == nil || !over {
		t.Fatal("it was not killed between the pages")
	}
	c.costs((16*3600 - 60) * 0.001)
	c.keep(c.keeper(), time.Minute)
	c.costs((16*3600 + 120) * 0.001)
	if r := c.report(); len(r.Purchases) != 1 {
		t.Errorf("the machine is in the ledger %d times", len(r.Purchases))
	}
}

func TestPageOfALaterVersionIsNotOverwritten(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	k.book = &ledger.Book{Form: ledger.Form + 1}
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("is of form %d", ledger.Form+1)
	if err := c.keeper().Keep(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one that says %q", err, want)
	}
}

// TestClusterAtRestIsSeldomLookedAt: it costs what it did when it was looked at every time,
// and what comes after is counted from when it came.
func TestClusterAtRestIsSeldomLookedAt(t *testing.T) {
	c := newCluster(t)
	k := c.keeper()
	c.keep(k, 0)
	c.buy("a")
	c.keep(k, 5*time.Second)
	before := c.looks
	for range 22 {
		c.keep(k, 5*time.Second)
	}
	if looks := c.looks - before; looks != 0 {
		t.Errorf("the cluster was looked at %d times in 110 seconds without a change, want 0", looks)
	}
	c.keep(k, lookHolds-22*5*time.Second)
	if looks := c.looks - before; looks != 1 {
		t.Errorf("the cluster was looked at %d times in %s without a change, want once", looks, lookHolds)
	}
	b := c.buy("b")
	c.keep(k, 5*time.Second)
	for range 3 {
		c.keep(k, 5*time.Second)
	}
	c.store.Remove(b)
	k.Gone("b", c.clock.Now())
	c.keep(k, 5*time.Second)
	c.keep(k, time.Minute)
	rested := lookHolds.Seconds()
	c.costs((5 + rested + 5*5 + 60 + 4*5) * 0.001)
	for range 4 {
		c.keep(k, 5*time.Second)
	}
	c.price, c.market = 7.2, 1
	c.keep(k, 5*time.Second) // counted at the new price
	c.keep(k, time.Minute)
	c.costs((5+rested+5*5+60+4*5+4*5)*0.001 + (5+60)*0.002)
}
