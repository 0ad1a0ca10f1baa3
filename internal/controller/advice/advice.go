// Package advice tells on NodePools what is unwise about them: what nap lint says, in the
// same words, as a condition and as events. It takes the catalogue, the quota and the other
// NodePools to tell, so the API server cannot say it when a NodePool is applied.
//
// The condition is no part of Ready: the NodePool buys as its owner wrote it. The rules are
// those of package poollint. Start with [Loop].
package advice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

const (
	// every is how often the loop looks whether something has changed. It reads the cache
	// alone.
	every = 3 * time.Second
	// afresh is when the rules are applied although nothing seems to have changed: the
	// region may sell other sizes.
	afresh = 10 * time.Minute
)

// Condition is False on a NodePool while something about it is unwise, and True when
// nothing is any more. A NodePool about which nothing ever was does not have it.
const Condition = "ConfigurationSound"

// ReasonSound is the reason of the condition, and of the event, when nothing is unwise any
// more. The reasons of findings are the codes of package poollint.
const ReasonSound = event.ReasonSound

const sound = "Nothing about the NodePool is unwise"

// mostFindings is how many findings a condition has; the rest is counted.
const mostFindings = 8

// Loop keeps the condition of all NodePools. It is a manager's runnable.
type Loop struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Manages reports whether a NodePool is nap's.
	Manages func(*karpv1.NodePool) bool
	// Catalogs are what NodePools can buy.
	Catalogs fleet.Catalogs
	// Excluded says why a size that the region sells is left out for a NodePool, or "".
	Excluded func(ctx context.Context, pool *karpv1.NodePool) func(size string) string
	// Subscription is what is known of the subscription beside what is sold to it.
	Subscription func() poollint.Subscription
	// Market changes whenever a limit does.
	Market func() uint64

	// seen is the state that the rules were applied to last, and when.
	seen string
	at   time.Time
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	return periodic.Run(ctx, l.Clock, every, "telling what is unwise about NodePools", l.look)
}

// look applies the rules when something has changed that they look at.
func (l *Loop) look(ctx context.Context) error {
	var pools karpv1.NodePoolList
	var classes v1beta1.AKSNodeClassList
	for _, list := range []client.ObjectList{&pools, &classes} {
		if err := l.Kube.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing NodePools and AKSNodeClasses: %w", err)
		}
	}
	mine := slices.DeleteFunc(pools.Items, func(p karpv1.NodePool) bool { return p.DeletionTimestamp != nil || !l.Manages(&p) })
	slices.SortFunc(mine, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(classes.Items, func(a, b v1beta1.AKSNodeClass) int { return strings.Compare(a.Name, b.Name) })
	subscription := l.Subscription()
	now := l.state(mine, classes.Items, subscription.NoManagedGPU)
	if now == l.seen && l.Clock.Since(l.at) < afresh {
		return nil
	}
	for i := range mine { // those of the cache are not to be changed
		mine[i] = *mine[i].DeepCopy()
	}
	byPool := map[string][]poollint.Finding{}
	for _, f := range poollint.Lint(l.entries(ctx, mine, classes.Items), subscription) {
		byPool[f.NodePool] = append(byPool[f.NodePool], f)
	}
	whole := true
	for i := range mine {
		done, err := l.tell(ctx, &mine[i], byPool[mine[i].Name])
		if err != nil {
			return err
		}
		whole = whole && done
	}
	if whole {
		l.seen, l.at = now, l.Clock.Now()
	}
	return nil
}

// state is a text that changes with everything that the rules look at, sizes of the region
// excepted. NodePools and AKSNodeClasses are sorted: a cache lists them in any order.
func (l *Loop) state(pools []karpv1.NodePool, classes []v1beta1.AKSNodeClass, noManagedGPU bool) string {
	var b strings.Builder
	fmt.Fprint(&b, l.Market(), noManagedGPU)
	for i := range pools {
		p := &pools[i]
		// Annotations do not count in the generation.
		fmt.Fprint(&b, " ", p.UID, p.Name, p.Generation)
		fmt.Fprint(&b, " ", p.Annotations[v1beta1.AnnotationMaxHourlyCost], p.Annotations[v1beta1.AnnotationNodeCost])
	}
	for i := range classes {
		fmt.Fprint(&b, " ", classes[i].UID, classes[i].Name, classes[i].Generation, len(classes[i].Status.Images))
	}
	return b.String()
}

// entries are the NodePools whose catalogue can be read: why that of another cannot, its
// condition Ready says.
func (l *Loop) entries(ctx context.Context, pools []karpv1.NodePool, classes []v1beta1.AKSNodeClass) []poollint.Pool {
	byName := map[string]*v1beta1.AKSNodeClass{}
	for i := range classes {
		byName[classes[i].Name] = &classes[i]
	}
	var out []poollint.Pool
	for i := range pools {
		p := &pools[i]
		catalog, err := l.Catalogs.Catalog(ctx, p.Name)
		if err != nil || catalog == nil {
			continue
		}
		entry := poollint.Pool{
			Pool: kube.Pool(p), Catalog: catalog, Lacking: poollint.Lacking{Excluded: l.Excluded(ctx, p)},
			NeverExpires: p.Spec.Template.Spec.ExpireAfter.Duration == nil,
		}
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && byName[ref.Name] != nil {
			class := byName[ref.Name]
			entry.ManagedGPU = class.ManagesGPUs()
			if class.Spec.ImageVersion != nil {
				entry.Image = *class.Spec.ImageVersion
			}
		}
		out = append(out, entry)
	}
	return out
}

// Message is the condition's, for findings on one NodePool.
func Message(found []poollint.Finding) string {
	var parts []string
	for i := range found[:min(mostFindings, len(found))] {
		parts = append(parts, inCondition(&found[i]))
	}
	if more := len(found) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("And %d more: nap lint", more))
	}
	return strings.Join(parts, " ")
}

// inCondition is a finding as the condition has it. By this it is known which findings
// people have been told of, by an earlier controller, too.
func inCondition(f *poollint.Finding) string { return string(f.Code) + ": " + f.Text() }

// tell makes the condition of a NodePool say what was found, with an event for each finding
// that it did not say before. It reports whether it did: when another writer was faster, the
// next look sees the NodePool as it is then.
func (l *Loop) tell(ctx context.Context, pool *karpv1.NodePool, found []poollint.Finding) (bool, error) {
	stored := pool.DeepCopy()
	conditions := pool.StatusConditions(status.WithClock(l.Clock))
	before, message := "", sound
	if c := conditions.Get(Condition); c != nil {
		before = c.Message
	}
	if len(found) > 0 {
		message = Message(found)
	}
	switch {
	case before == message, before == "" && len(found) == 0:
		return true, nil
	case len(found) > 0:
		conditions.SetFalse(Condition, string(found[0].Code), message)
	default:
		conditions.SetTrueWithReason(Condition, ReasonSound, message)
	}
	if written, err := periodic.WriteStatus(ctx, l.Kube, stored, pool); !written {
		return false, err
	}
	if len(found) == 0 {
		l.Recorder.Publish(event.Sound(pool, sound))
	}
	for i := range found {
		if f := &found[i]; !strings.Contains(before, inCondition(f)) {
			l.Recorder.Publish(event.Unwise(pool, f))
		}
	}
	return true, nil
}
