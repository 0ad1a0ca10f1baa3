package provisioning

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Reasons for which a planned claim is not created although the plan was right
// when it was made. They are label values of nap_provision_rejected_total.
const (
	RejectedPods   = "PodsChanged"
	RejectedPool   = "NodePoolChanged"
	RejectedLimits = "NodePoolUsageChanged"
)

// rejection is a claim that no longer holds. Its pods are planned again.
type rejection struct {
	reason string
	detail string
}

// verifier compares the present with what a plan was made on. It is made for one
// round and used from several goroutines; it does not change.
type verifier struct {
	kube client.Reader
	// wants is how many pods a workload wants now, by its UID.
	wants func(uid string) int
	// inputs are what the plan was made on.
	inputs *planInputs
	// lenient lets a claim pass while at least one of its pods waits: pods may
	// come and go faster than plans are made, and some plan must win.
	lenient bool
	// foreign is, by pool with limits, the name of a claim that another writer has
	// created since the snapshot.
	foreign map[string]string
}

func newVerifier(ctx context.Context, a *applier, in *planInputs, drafts []*draft, lenient bool) (*verifier, error) {
	v := &verifier{kube: a.clients.Cached, wants: a.wants, inputs: in, lenient: lenient, foreign: map[string]string{}}
	limited := map[string]bool{}
	for _, d := range drafts {
		pool := in.pools[d.pool]
		limited[d.pool] = len(pool.Spec.Limits) > 0 || pool.Annotations[v1beta1.AnnotationMaxHourlyCost] != ""
	}
	for pool := range limited {
		if !limited[pool] {
			continue
		}
		var claims karpv1.NodeClaimList
		if err := v.kube.List(ctx, &claims, client.MatchingLabels{karpv1.NodePoolLabelKey: pool}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", pool, err)
		}
		for i := range claims.Items {
			if in.snapshot.Claim(claims.Items[i].Name) == nil {
				v.foreign[pool] = claims.Items[i].Name
				break
			}
		}
	}
	return v, nil
}

// verify returns why a claim must not be created any more, or nil.
func (v *verifier) verify(ctx context.Context, d *draft) (*rejection, error) {
	if r, err := v.pool(ctx, d); r != nil || err != nil {
		return r, err
	}
	if name := v.foreign[d.pool]; name != "" {
		return &rejection{RejectedLimits, fmt.Sprintf("NodeClaim %s has come since, and NodePool %s has limits", name, d.pool)}, nil
	}
	return v.pods(ctx, d)
}

func (v *verifier) pool(ctx context.Context, d *draft) (*rejection, error) {
	planned, now := v.inputs.pools[d.pool], &karpv1.NodePool{}
	err := v.kube.Get(ctx, client.ObjectKey{Name: d.pool}, now)
	switch {
	case apierrors.IsNotFound(err):
		return &rejection{RejectedPool, fmt.Sprintf("NodePool %s is gone", d.pool)}, nil
	case err != nil:
		return nil, fmt.Errorf("reading NodePool %s: %w", d.pool, err)
	case now.UID != planned.UID || !now.DeletionTimestamp.IsZero():
		return &rejection{RejectedPool, fmt.Sprintf("NodePool %s is being deleted", d.pool)}, nil
	case now.Generation != planned.Generation || costsChanged(planned, now):
		return &rejection{RejectedPool, fmt.Sprintf("NodePool %s has been changed", d.pool)}, nil
	}
	return nil, nil
}

// costsChanged reports whether the annotations of a NodePool that planning obeys differ.
// They do not count in its generation.
func costsChanged(before, now *karpv1.NodePool) bool {
	for _, name := range []string{v1beta1.AnnotationMaxHourlyCost, v1beta1.AnnotationNodeCost} {
		was, had := before.Annotations[name]
		is, has := now.Annotations[name]
		if was != is || had != has {
			return true
		}
	}
	return false
}

func (v *verifier) pods(ctx context.Context, d *draft) (*rejection, error) {
	waiting, lost := 0, model.PodRef{}
	for _, ref := range d.pods {
		still, err := v.waits(ctx, ref)
		if err != nil {
			return nil, err
		}
		if still {
			waiting++
		} else {
			lost = ref
		}
	}
	if waiting == len(d.pods) || v.lenient && waiting > 0 {
		return nil, nil
	}
	return &rejection{RejectedPods, fmt.Sprintf("%d of %d pods no longer wait, such as %s", len(d.pods)-waiting, len(d.pods), lost)}, nil
}

// waits reports whether a pod still needs the place that was planned for it.
func (v *verifier) waits(ctx context.Context, ref model.PodRef) (bool, error) {
	record := v.inputs.input.Record(ref)
	if record != nil && record.Announced > 0 {
		// Of those that its owner had and has created since, and of those to come, it has
		// this number.
		return record.Announced+v.inputs.input.Living(record.OwnerUID) <= v.wants(record.OwnerUID), nil
	}
	pod := &corev1.Pod{}
	err := v.kube.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err) || record == nil:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading pod %s: %w", ref, err)
	case string(pod.UID) != record.UID:
		return false, nil
	case record.Node == "":
		return (podutils.IsProvisionable(pod) || kube.Unjudged(pod)) && !podutils.IsTerminating(pod), nil
	}
	// It sits on a node that leaves.
	return pod.Spec.NodeName == record.Node && podutils.IsReschedulable(pod), nil
}
