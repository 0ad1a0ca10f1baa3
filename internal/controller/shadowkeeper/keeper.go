// Package shadowkeeper keeps the record of what nap would have cost (package shadow) as the
// ShadowReport of a cluster that another autoscaler rules. It watches the cluster, plans as
// nap savings does, and writes its report and nothing else. It needs no right in Azure: prices
// are those that nap is built with, or a file's.
//
// Two keepers do not count twice. The report is written only over the version that was read,
// so that the later one is refused, and reads again.
//
// See docs/shadow.md.
package shadowkeeper

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/savings"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

const (
	// lookEvery is how often pods that wait are looked at.
	lookEvery = time.Second
	// restFactor is how many times as long as a sample took the keeper waits at least until
	// the next one, so that it takes a twentieth of a core at most.
	restFactor = 20
)

// NodeNameIndex is the field by which Cluster must be able to list pods.
const NodeNameIndex = "spec.nodeName"

// NodeNameOf is that field of a pod, for an index.
func NodeNameOf(o client.Object) []string {
	if pod, is := o.(*corev1.Pod); is {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// Keeper keeps the report.
type Keeper struct {
	// Cluster reads the ruled cluster, from a cache.
	Cluster client.Reader
	// Reader reads the report from the API server itself, Writer writes it.
	Reader client.Reader
	Writer client.Writer
	Clock  clock.Clock
	// Settings say how samples are taken.
	Settings

	market market
	// record is what was read and counted since, nil before; object is what it is written to,
	// as the API server has it. next is when the next sample is due.
	record *shadow.Record
	object v1alpha1.ShadowReport
	next   time.Time
	follow follower
}

// Settings say how samples are taken.
type Settings struct {
	// Every is the usual pause between samples.
	Every time.Duration
	// Budget is the time to improve a plan.
	Budget time.Duration
	// BatchIdle and BatchMax are how long nap would collect waiting pods.
	BatchIdle, BatchMax time.Duration
	// PricesFile is what the subscription pays; "" for list prices.
	PricesFile string
}

// Start keeps the report until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "keeping the shadow's report did not succeed, trying again", "ShadowReport", v1alpha1.ShadowReportName)
			k.next = k.Clock.Now().Add(k.Every)
		}
		select {
		case <-ctx.Done():
		case <-k.Clock.After(lookEvery):
		}
	}
	return nil
}

// Look looks at pods that wait, and takes a sample and writes the report when that is due.
func (k *Keeper) Look(ctx context.Context) error {
	now := k.Clock.Now()
	if k.record == nil {
		if now.Before(k.next) {
			return nil
		}
		if err := k.read(ctx); err != nil {
			return err
		}
	}
	if err := k.lookAtPods(ctx); err != nil {
		return err
	}
	if now.Before(k.next) {
		return nil
	}
	sample, err := k.sample(ctx)
	if err != nil {
		return err
	}
	pause := max(k.Every, restFactor*k.Clock.Since(now))
	k.next = now.Add(pause)
	k.record.Observe(*sample, pause)
	if err := k.write(ctx); err != nil {
		// What the API server has decides: it is read again and counted from there.
		k.record, k.follow = nil, follower{}
		return err
	}
	return nil
}

// sample prices the nodes, and plans for their pods.
func (k *Keeper) sample(ctx context.Context) (*shadow.Sample, error) {
	w, err := k.world(ctx)
	if err != nil {
		return nil, err
	}
	now := savings.Now(w.objects, w.source)
	planned, err := savings.Replan(ctx, savings.Unplaced(w.objects, now.Goes), w.assumed, w.source, k.planOptions())
	if err != nil {
		return nil, err
	}
	k.record.Region, k.record.Notes = w.source.Region, w.notes
	p := planned.Input.Problem
	return &shadow.Sample{
		At: k.Clock.Now(), Nodes: len(now.Goes), Stay: now.Stay, Pods: p.PodCount(),
		Paid:    priceOf(now.Price, now.Disk, now.Node),
		Planned: costOf(p, planned.Plan), Bound: planned.Plan.LowerBound.Dollars(), PlannedNodes: len(planned.Plan.NewNodes),
		Pending: unplaced(planned),
	}, nil
}

func (k *Keeper) planOptions() fleet.Options {
	start := k.Clock.Now()
	return fleet.Options{Now: start, Policy: model.Policy{Budget: k.Budget, Elapsed: func() time.Duration { return k.Clock.Since(start) }}}
}

// unplaced is how many pods a plan has no place for.
func unplaced(p *savings.Planned) int {
	n := 0
	for i := range p.Plan.Unschedulable {
		n += len(p.Plan.Unschedulable[i].Pods)
	}
	for i := range p.Input.Rejected {
		if !p.Input.Rejected[i].Quiet {
			n++
		}
	}
	return n
}

// costOf is what the nodes of a plan cost per hour.
func costOf(p *model.Problem, plan *model.Plan) shadow.Price {
	var price, disk, node model.Money
	for i := range plan.NewNodes {
		best := plan.NewNodes[i].Best()
		o := offeringOf(p, &plan.NewNodes[i])
		price += best.Price
		disk += o.DiskPrice
		node += o.NodePrice
	}
	return priceOf(price, disk, node)
}

// offeringOf is what a new node is bought as.
func offeringOf(p *model.Problem, n *model.NewNode) *model.Offering {
	best := n.Best()
	return &p.Catalogs[p.Pools[n.Pool].Catalog].InstanceTypes[best.InstanceType].Offerings[best.Offering]
}

func priceOf(price, disk, node model.Money) shadow.Price {
	return shadow.Price{Machine: (price - disk - node).Dollars(), Disk: disk.Dollars(), Node: node.Dollars()}
}

// read reads the report. Nothing is written over one that cannot be understood, and the error
// says so.
func (k *Keeper) read(ctx context.Context) error {
	k.object, k.record = v1alpha1.ShadowReport{}, nil
	err := k.Reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ShadowReportName}, &k.object)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no ShadowReports: install their definition: "+
			"helm upgrade --install nap-crd charts/nap-crd --set shadowOnly=true: %w", err)
	case apierrors.IsNotFound(err):
		k.record, k.object = shadow.NewRecord(), v1alpha1.ShadowReport{}
		return nil
	case err != nil:
		return fmt.Errorf("read ShadowReport %s: %w", v1alpha1.ShadowReportName, err)
	}
	if k.record, err = shadow.Unpack(k.object.Data); err != nil {
		return fmt.Errorf("ShadowReport %s: %w; delete it to begin a new one", v1alpha1.ShadowReportName, err)
	}
	for i := range k.record.Purchases {
		p := &k.record.Purchases[i]
		p.Lost = p.Lost || p.Placed == nil
	}
	return nil
}

// write writes the report over the version that was read.
func (k *Keeper) write(ctx context.Context) error {
	data, err := k.record.Pack()
	if err != nil {
		return err
	}
	total := k.record.Since(time.Time{})
	report := &v1alpha1.ShadowReport{
		ObjectMeta: k.object.ObjectMeta, Form: shadow.Form,
		Paid: fmt.Sprintf("%.2f", total.Paid.Total()), Planned: fmt.Sprintf("%.2f", total.Planned.Total()),
		Saved: fmt.Sprintf("%.0f%%", total.SavedPercent), Watched: fmt.Sprintf("%.1fh", total.WatchedHours),
		Written: metav1.NewTime(k.Clock.Now()), Data: data,
	}
	report.Name = v1alpha1.ShadowReportName
	if k.object.ResourceVersion == "" {
		err = k.Writer.Create(ctx, report)
	} else {
		err = k.Writer.Update(ctx, report)
	}
	if err != nil {
		return fmt.Errorf("write ShadowReport %s: %w", report.Name, err)
	}
	k.object = v1alpha1.ShadowReport{ObjectMeta: report.ObjectMeta}
	return nil
}

// Read reads the record of a cluster; nil where none is kept.
func Read(ctx context.Context, reader client.Reader) (*shadow.Record, error) {
	var report v1alpha1.ShadowReport
	err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ShadowReportName}, &report)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ShadowReport %s: %w", v1alpha1.ShadowReportName, err)
	}
	return shadow.Unpack(report.Data)
}
