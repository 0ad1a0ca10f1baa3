package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// told is what the controller of a live cluster tells; document is nil where it tells
// nothing, and then why says so.
type told struct {
	document *snapshot.Document
	why      string
}

// ownKinds reads the objects of nap's own API group that tell something.
func ownKinds(config *rest.Config) (client.Reader, error) {
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		return nil, err
	}
	reader, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", config.Host, err)
	}
	return reader, nil
}

// readSnapshot reads what the controller of a cluster tells.
func readSnapshot(ctx context.Context, config *rest.Config) (*told, error) {
	reader, err := ownKinds(config)
	if err != nil {
		return nil, err
	}
	return tellFrom(ctx, reader)
}

// tellFrom is readSnapshot for a client. Without the right to read, or where there is no
// controller, the answer goes on without it.
func tellFrom(ctx context.Context, reader client.Reader) (*told, error) {
	document, err := snapshot.Read(ctx, reader)
	switch {
	case errors.Is(err, snapshot.ErrNone):
		return &told{why: err.Error()}, nil
	case apierrors.IsForbidden(err):
		return &told{why: "you may not get snapshots and list snapshotshards of nap.azure.com"}, nil
	case err != nil:
		return nil, err
	}
	return &told{document: document}, nil
}

// tellsFleet reports whether the controller tells of NodePools, pods, machines and moves, as one
// with Karpenter's engine does not.
func (t *told) tellsFleet() bool {
	return t != nil && t.document != nil && t.document.Status.Engine != engineKarpenter
}

// manages says which NodePools nap manages in a live cluster, as its controller does; nil for
// files, of which all are planned with.
func (t *told) manages() func(*v1.NodePool) bool {
	if t == nil {
		return nil
	}
	return func(p *v1.NodePool) bool { return kube.CheckManaged(p) == nil }
}

// offline is the first line of an answer that no controller stands behind, or "".
func (t *told) offline() string {
	if t == nil || t.document != nil {
		return ""
	}
	return "offline: assuming list prices, and that quota and capacity are there: " + t.why
}

// refusals are what Azure has refused the controller.
func (t *told) refusals(now func() time.Time) (*unavailable.Offerings, error) {
	refused := unavailable.New(now)
	if text := t.document.Memory[snapshot.MemoryRefusals]; text != "" {
		if err := refused.Unmarshal([]byte(text)); err != nil {
			return nil, fmt.Errorf("the snapshot of nap's controller: %w", err)
		}
	}
	return refused, nil
}

// quotas are the limits of the subscription as the controller knows them.
func (t *told) quotas(now func() time.Time) *quota.Tracker {
	tracker := quota.NewTracker(now)
	var lines []quota.Line
	for _, l := range t.document.Status.Quotas {
		lines = append(lines, quota.Line{Name: l.Name, Limit: l.Limit, Used: l.Used})
	}
	if len(lines) > 0 {
		tracker.Set(lines, now())
	}
	return tracker
}

// decided are pods on which the controller has decided: what it said is the answer, and
// no plan of their own is made for them.
type decided struct {
	refs    []model.PodRef
	verdict *snapshot.Verdict
	// class is one of the pods, as a plan would have it.
	class model.PodClass
}

// words are those of the verdict, as those of a plan.
func (d *decided) words() explain.Pending {
	v := d.verdict
	return explain.Pending{
		Reason: model.Reason(v.Reason), Why: v.Why, Nearest: v.Nearest, Fix: v.Fix, NotCause: v.NotCause, Details: v.Details,
	}
}

// take takes the pods out of a problem on which the controller has decided.
func (t *told) take(p *model.Problem) []decided {
	byPod := map[string]int{}
	for i := range t.document.Verdicts {
		for _, pod := range t.document.Verdicts[i].Pods {
			byPod[pod] = i
		}
	}
	found := map[int]*decided{}
	var order []int
	for i := range p.Classes {
		class := &p.Classes[i]
		class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(ref model.PodRef) bool {
			at, known := byPod[ref.String()]
			if !known {
				return false
			}
			if found[at] == nil {
				found[at] = &decided{verdict: &t.document.Verdicts[at], class: p.Classes[i]}
				found[at].class.Pods = []model.PodRef{ref}
				order = append(order, at)
			}
			found[at].refs = append(found[at].refs, ref)
			return true
		})
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
	slices.Sort(order)
	var out []decided
	for _, at := range order {
		out = append(out, *found[at])
	}
	return out
}
