package disruption

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpevents "sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// replacements creates, finds and deletes the claims that commands buy. It has no
// state of its own and is safe for concurrent use.
type replacements struct {
	clients  Clients
	mirror   Mirror
	cluster  Cluster
	recorder karpevents.Recorder
	metrics  *metrics.Disruption
	clock    clock.Clock
}

// create creates a replacement. Its name was chosen before, so that repeating it
// makes no second one. A *refusal is an error that repeating does not cure.
func (r *replacements) create(ctx context.Context, c *Record, draft *karpv1.NodeClaim) error {
	claim := draft.DeepCopy()
	err := r.clients.Cached.Create(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		err = r.clients.Live.Get(ctx, client.ObjectKeyFromObject(draft), claim)
		if err == nil && claim.Annotations[v1beta1.AnnotationReplaces] != c.ID {
			return &refusal{fmt.Errorf("creating replacement %s: the name is taken", draft.Name)}
		}
	}
	switch {
	case err == nil:
		r.mirror.Expect(claim)
		r.cluster.UpdateNodeClaim(claim)
		r.recorder.Publish(event.Replacing(claim, c.Reason))
		r.metrics.ReplacementCreated(c.Reason, claim)
		return nil
	case !nodeclaims.MaybeCreated(err):
		return &refusal{fmt.Errorf("creating replacement %s: %w", draft.Name, err)}
	}
	return fmt.Errorf("creating replacement %s: %w", draft.Name, err)
}

// refusal is an error that repeating does not cure.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// find returns a replacement's claim, or nil while it is not observed. lost is why
// it will never come, or "".
func (r *replacements) find(ctx context.Context, c *Record, name string) (claim *karpv1.NodeClaim, lost string, err error) {
	claim, key := &karpv1.NodeClaim{}, client.ObjectKey{Name: name}
	err = r.clients.Cached.Get(ctx, key, claim)
	if apierrors.IsNotFound(err) {
		if r.clock.Since(c.Begun) < observeWithin {
			return nil, "", nil
		}
		if err = r.clients.Live.Get(ctx, key, claim); apierrors.IsNotFound(err) {
			return nil, "could not be launched", nil
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading replacement %s: %w", name, err)
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil, "is being deleted before it was used", nil
	}
	if booted := claim.StatusConditions().Get(v1beta1.ConditionBooted); booted.IsFalse() {
		return nil, "does not become a node: " + booted.Message, nil
	}
	return claim, "", nil
}

// initialized reports whether the cache has a replacement that is initialized.
func (r *replacements) initialized(ctx context.Context, name string) bool {
	claim := &karpv1.NodeClaim{}
	err := r.clients.Cached.Get(ctx, client.ObjectKey{Name: name}, claim)
	return err == nil && claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized)
}

// dropUnused deletes a replacement if it is the command's and no pod has come to it.
func (r *replacements) dropUnused(ctx context.Context, c *Record, name string) error {
	claim := &karpv1.NodeClaim{}
	switch err := r.clients.Live.Get(ctx, client.ObjectKey{Name: name}, claim); {
	case apierrors.IsNotFound(err):
		r.mirror.Forget(name)
		r.cluster.DeleteNodeClaim(name)
		return nil
	case err != nil:
		return fmt.Errorf("reading replacement %s: %w", name, err)
	}
	if claim.Annotations[v1beta1.AnnotationReplaces] != c.ID || !claim.DeletionTimestamp.IsZero() || inUse(r.mirror.Snapshot(), claim) {
		return nil
	}
	if err := r.clients.Cached.Delete(ctx, claim); err != nil {
		return ignoreGone(err, "deleting replacement "+name)
	}
	return nil
}

// inUse reports whether pods run on a claim's node that would need another one, or
// are nominated for it.
func inUse(s *fleet.Snapshot, claim *karpv1.NodeClaim) bool {
	node := claim.Status.NodeName
	if node == "" {
		return false
	}
	for p := range s.Pods() {
		if (p.Node == node || p.Node == "" && p.Nominated == node) && !p.Daemon && !p.Static && !p.Terminal {
			return true
		}
	}
	return false
}

// lose goes on without a replacement that is lost, or fails the command.
func lose(ctx context.Context, c *command, claim, why string) {
	c.dropReplacement(ctx, claim, why, model.ReasonUnavailable, fmt.Sprintf("replacement %s %s", claim, why))
}

func replacementNames(list []Replacement) []string {
	var out []string
	for _, r := range list {
		out = append(out, strings.TrimSpace(r.Claim+" "+r.InstanceType))
	}
	return out
}
