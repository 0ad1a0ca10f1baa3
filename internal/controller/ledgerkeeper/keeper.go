// Package ledgerkeeper keeps the ledger (package ledger) as LedgerPages, for people and for
// the next controller. There is one writer, the leader. It looks at the cluster every five
// seconds, writes within that time when a machine or a move has begun or ended, and once in
// a minute otherwise. The page of the day is written as one object, so that a crash leaves
// it whole, and only over the version that was read: after a change of leader the earlier
// one's write is refused, and it reads again.
//
// See docs/ledger.md.
package ledgerkeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/ledger"
)

const (
	every = 5 * time.Second
	// atLeastEvery is how often the page is written where only costs have grown.
	atLeastEvery = time.Minute
	// lookHolds is for how long a look at a cluster in which nothing changes stands for it: of
	// what decides prices, an AKSNodeClass is in neither the mirror nor the market.
	lookHolds = 5 * time.Minute
	// keptDays is for how many days pages are kept.
	keptDays = 35
)

// Keeper keeps the ledger, on the leader alone.
type Keeper struct {
	// Reader reads the API server itself: a cache would watch the pages.
	Reader client.Reader
	Writer client.Writer
	Clock  clock.Clock
	// Fleet is the mirror of the cluster, Catalogs price the nodes.
	Fleet    func() *fleet.Snapshot
	Catalogs fleet.Catalogs
	// Market is another number after prices have changed; nil where they never do.
	Market func() uint64
	// Labels are the keys of the pods' labels by which costs are told apart.
	Labels []string
	// Paid is told what machines that were bought were to cost and cost, in dollars per
	// hour; nil is told nothing.
	Paid func(nodePool string, planned, paid float64)

	mu sync.Mutex
	// gone is when machines went, or their NodeClaims were deleted, since the last look; mu guards it.
	gone map[string]time.Time

	// book is what was read and counted since, nil before; page is the object that it is
	// written to, as the API server has it. wrote is when. One goroutine uses them.
	book  *ledger.Book
	page  v1alpha1.LedgerPage
	wrote time.Time
	// rest is what was seen last, and how long nothing has changed since.
	rest rest
}

// rest is a cluster in which nothing changes, as the mirror has it.
type rest struct {
	// fleet is what was looked at, nil before, market the number of the prices; look is what
	// was seen, counted until then.
	fleet  *fleet.Snapshot
	market uint64
	look   *ledger.Look
	// looked is when the cluster itself was looked at.
	looked time.Time
	// until is when it was still the fleet.
	until time.Time
}

// Gone notes that the machine of a NodeClaim went, or the NodeClaim: what was earlier counts.
// It may be called from any goroutine.
func (k *Keeper) Gone(claim string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone == nil {
		k.gone = map[string]time.Time{}
	}
	if earlier, known := k.gone[claim]; !known || at.Before(earlier) {
		k.gone[claim] = at
	}
}

// Start keeps the ledger until the context ends. The mirror has seen the whole cluster.
func (k *Keeper) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "keeping the ledger did not succeed, trying again", "LedgerPage", v1alpha1.LedgerName)
		}
		select {
		case <-ctx.Done():
		case <-periodic.After(k.Clock, every):
		}
	}
	return nil
}

// Keep looks at the cluster once, and writes down what is new.
func (k *Keeper) Keep(ctx context.Context) error {
	if k.book == nil {
		if err := k.read(ctx); err != nil {
			return err
		}
	}
	gone := k.wentSince()
	var market uint64
	if k.Market != nil {
		market = k.Market()
	}
	// The fleet is read after the time, so that what is missing in it went before.
	at, now := k.Clock.Now(), k.Fleet()
	rests := now == k.rest.fleet && market == k.rest.market && len(gone) == 0
	if rests {
		k.rest.until = at
		// Nothing is to be written, and the day is not over: it can be counted later.
		if at.Sub(k.wrote) < atLeastEvery && at.UTC().Format(time.DateOnly) == k.book.Day {
			return nil
		}
	}
	looked, look := k.rest.looked, k.rest.again(at)
	if !rests || at.Sub(looked) >= lookHolds {
		var err error
		if look, err = ledger.LookAt(ctx, now, k.Catalogs, ledger.Settings{Now: at, Labels: k.Labels, Gone: gone}); err != nil {
			return err
		}
		looked = at
	}
	if err := k.observe(ctx, k.restEnds()); err != nil {
		return err
	}
	if err := k.observe(ctx, look); err != nil {
		return err
	}
	k.rest = rest{fleet: now, market: market, look: look, looked: looked, until: at}
	if !k.book.Changed() && at.Sub(k.wrote) < atLeastEvery {
		return nil
	}
	if err := k.write(ctx); err != nil {
		// What the API server has decides: it is read again and counted from there.
		k.book = nil
		return err
	}
	k.wrote = at
	return nil
}

// again is the look at a cluster in which nothing has changed since; nil before the first.
func (r *rest) again(at time.Time) *ledger.Look {
	if r.look == nil {
		return nil
	}
	out := *r.look
	out.At = at
	return &out
}

// restEnds is the last look until the moment in which it still held, so that what has come
// since is counted from there; nil where that was counted.
func (k *Keeper) restEnds() *ledger.Look {
	if k.rest.look == nil || !k.rest.until.After(k.rest.look.At) {
		return nil
	}
	return k.rest.again(k.rest.until)
}

// observe counts what a look has seen, nil for nothing, and tells of the machines that are
// new. Where a day is over, its page is closed.
func (k *Keeper) observe(ctx context.Context, look *ledger.Look) error {
	if look == nil {
		return nil
	}
	before := len(k.book.Open)
	known := map[string]bool{}
	for i := range k.book.Open {
		known[k.book.Open[i].NodeClaim] = true
	}
	over := k.book.Observe(look)
	k.forget()
	if before > 0 || !k.wrote.IsZero() {
		k.tell(known)
	}
	if over != nil {
		if err := k.close(ctx, over); err != nil {
			k.book = nil
			return err
		}
	}
	return nil
}

// wentSince is when NodeClaims were deleted.
func (k *Keeper) wentSince() map[string]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.gone)
}

// forget forgets the NodeClaims that the book has closed; those that it still counts as
// there are gone at the next look.
func (k *Keeper) forget() {
	open := map[string]bool{}
	for i := range k.book.Open {
		open[k.book.Open[i].NodeClaim] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.gone, func(claim string, _ time.Time) bool { return !open[claim] })
}

// tell tells of the machines that are new.
func (k *Keeper) tell(known map[string]bool) {
	if k.Paid == nil {
		return
	}
	for i := range k.book.Open {
		if m := &k.book.Open[i]; !known[m.NodeClaim] && m.Planned > 0 {
			k.Paid(m.NodePool, m.Planned, m.Paid.Total())
		}
	}
}

// read reads the page of the day. Nothing is written over one that cannot be understood,
// and the error says so.
func (k *Keeper) read(ctx context.Context) error {
	k.rest = rest{}
	var page v1alpha1.LedgerPage
	err := k.Reader.Get(ctx, client.ObjectKey{Name: v1alpha1.LedgerName}, &page)
	if apierrors.IsNotFound(err) {
		k.book, k.page = ledger.NewBook(k.Labels), v1alpha1.LedgerPage{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read LedgerPage %s: %w", v1alpha1.LedgerName, err)
	}
	book, err := ledger.Unpack(page.Data)
	if err != nil {
		return fmt.Errorf("LedgerPage %s: %w; delete it to begin a new one", v1alpha1.LedgerName, err)
	}
	book.LabelKeys = k.Labels
	k.book, k.page = book, page
	return nil
}

// write writes the page of the day over the version that was read.
func (k *Keeper) write(ctx context.Context) error {
	page, err := k.pageOf(k.book, v1alpha1.LedgerName)
	if err != nil {
		return err
	}
	page.ObjectMeta = k.page.ObjectMeta
	page.Name = v1alpha1.LedgerName
	if k.page.ResourceVersion == "" {
		err = k.Writer.Create(ctx, page)
	} else {
		err = k.Writer.Update(ctx, page)
	}
	if err != nil {
		return fmt.Errorf("write LedgerPage %s: %w", page.Name, err)
	}
	k.page = v1alpha1.LedgerPage{ObjectMeta: page.ObjectMeta}
	return nil
}

func (k *Keeper) pageOf(b *ledger.Book, name string) (*v1alpha1.LedgerPage, error) {
	data, err := b.Pack()
	if err != nil {
		return nil, err
	}
	return &v1alpha1.LedgerPage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Form:       ledger.Form, Day: b.Day, Cost: fmt.Sprintf("%.2f", b.Cost().Total()), Machines: int32(len(b.Open) + len(b.Ended)),
		Written: metav1.NewTime(k.Clock.Now()), Data: data,
	}, nil
}

// close writes the page of a day that is over, before the page of the next one: a crash in
// between repeats it. Pages that are too old are deleted.
func (k *Keeper) close(ctx context.Context, over *ledger.Book) error {
	page, err := k.pageOf(over, v1alpha1.LedgerName+"-"+over.Day)
	if err != nil {
		return err
	}
	var have v1alpha1.LedgerPage
	err = k.Reader.Get(ctx, client.ObjectKeyFromObject(page), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = k.Writer.Create(ctx, page)
	case err == nil:
		page.ObjectMeta = have.ObjectMeta
		err = k.Writer.Update(ctx, page)
	}
	if err != nil {
		return fmt.Errorf("write LedgerPage %s: %w", page.Name, err)
	}
	return k.dropOld(ctx)
}

func (k *Keeper) dropOld(ctx context.Context) error {
	var pages v1alpha1.LedgerPageList
	if err := k.Reader.List(ctx, &pages); err != nil {
		return fmt.Errorf("list LedgerPages: %w", err)
	}
	oldest := v1alpha1.LedgerName + "-" + k.Clock.Now().UTC().AddDate(0, 0, -keptDays).Format(time.DateOnly)
	var failed error
	for i := range pages.Items {
		page := &pages.Items[i]
		if strings.HasPrefix(page.Name, v1alpha1.LedgerName+"-") && page.Name < oldest {
			failed = errors.Join(failed, client.IgnoreNotFound(k.Writer.Delete(ctx, page)))
		}
	}
	return failed
}

// Read reads all pages of a cluster, the oldest first; none where no ledger is kept. The
// page of a day that was closed and is still being written counts once.
func Read(ctx context.Context, reader client.Reader) ([]*ledger.Book, error) {
	var pages v1alpha1.LedgerPageList
	if err := reader.List(ctx, &pages); err != nil {
		return nil, fmt.Errorf("list LedgerPages: %w", err)
	}
	var out []*ledger.Book
	current := ""
	for i := range pages.Items {
		if pages.Items[i].Name == v1alpha1.LedgerName {
			current = pages.Items[i].Day
		}
	}
	for i := range pages.Items {
		page := &pages.Items[i]
		if page.Name != v1alpha1.LedgerName && page.Day == current {
			continue
		}
		book, err := ledger.Unpack(page.Data)
		if err != nil {
			return nil, fmt.Errorf("LedgerPage %s: %w", page.Name, err)
		}
		out = append(out, book)
	}
	return out, nil
}
