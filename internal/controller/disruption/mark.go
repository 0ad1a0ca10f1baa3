package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// writesAtOnce bounds the requests that one command has under way.
const writesAtOnce = 16

// marker writes on nodes and claims that a command removes them, and takes that
// back: an annotation, the taint, a condition. All of it may be repeated. It has no
// state of its own and is safe for concurrent use.
type marker struct {
	// kube reads from caches, live from the API server itself.
	kube  client.Client
	live  client.Reader
	clock clock.Clock
}

// each does one thing for every node of a command, in parallel, and returns all
// errors.
func each(ctx context.Context, nodes []Removed, do func(context.Context, Removed) error) error {
	errs := make([]error, len(nodes))
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for i, n := range nodes {
		group.Go(func() error {
			errs[i] = do(ctx, n)
			return nil
		})
	}
	_ = group.Wait() // the errors are kept one by one
	return errors.Join(errs...)
}

// mark writes on a claim and its node that a command removes them: the command itself, the
// taint, and the reason, in this order. A claim that is gone or is being deleted is left alone,
// and so is its node.
func (m *marker) mark(ctx context.Context, r Removed, text, reason string) error {
	claim, err := m.claim(ctx, r.Claim)
	if claim == nil || err != nil {
		return err
	}
	if err := m.annotateClaim(ctx, claim, text); err != nil {
		return err
	}
	if err := m.taint(ctx, r.Node, true); err != nil {
		return err
	}
	return m.giveReason(ctx, claim, reason)
}

// annotate writes the command on a claim, or removes it with an empty text. A claim
// that is gone or is being deleted is left alone.
func (m *marker) annotate(ctx context.Context, name, text string) error {
	claim, err := m.claim(ctx, name)
	if claim == nil || err != nil {
		return err
	}
	return m.annotateClaim(ctx, claim, text)
}

// annotateClaim is annotate for a claim that has been read, which is then as the API server
// has answered.
func (m *marker) annotateClaim(ctx context.Context, claim *karpv1.NodeClaim, text string) error {
	if claim.Annotations[v1beta1.AnnotationCommand] == text {
		return nil
	}
	stored := claim.DeepCopy()
	if text == "" {
		delete(claim.Annotations, v1beta1.AnnotationCommand)
	} else {
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[v1beta1.AnnotationCommand] = text
	}
	return ignoreGone(m.kube.Patch(ctx, claim, client.MergeFrom(stored)), "annotating NodeClaim "+claim.Name)
}

// taint puts Karpenter's taint of a disruption on a node, or takes it away. A node
// that is being deleted keeps what it has. After a conflict the API server is asked: the cache
// may be behind.
func (m *marker) taint(ctx context.Context, name string, on bool) error {
	var reader client.Reader = m.kube
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node := &corev1.Node{}
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return ignoreGone(err, "reading node "+name)
		}
		reader = m.live
		return m.taintNode(ctx, node, on)
	})
}

// taintNode is taint for a node that has been read. The error is a conflict where the node has
// changed since.
func (m *marker) taintNode(ctx context.Context, node *corev1.Node, on bool) error {
	is := func(t corev1.Taint) bool { return t.MatchTaint(&karpv1.DisruptedNoScheduleTaint) }
	if slices.ContainsFunc(node.Spec.Taints, is) == on || !node.DeletionTimestamp.IsZero() {
		return nil
	}
	stored := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, is)
	if on {
		node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
	}
	// The lock keeps the list that another writer is changing at this moment.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	return ignoreGone(m.kube.Patch(ctx, node, patch), "tainting node "+node.Name)
}

// condition sets the claim's condition DisruptionReason, or clears it with an
// empty reason.
func (m *marker) condition(ctx context.Context, name, reason string) error {
	claim, err := m.claim(ctx, name)
	if claim == nil || err != nil {
		return err
	}
	return m.giveReason(ctx, claim, reason)
}

// giveReason is condition for a claim that has been read, and is read from the API server after
// a conflict.
func (m *marker) giveReason(ctx context.Context, claim *karpv1.NodeClaim, reason string) error {
	err := m.writeReason(ctx, claim, reason)
	if !apierrors.IsConflict(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := readClaim(ctx, m.live, claim.Name)
		if now == nil || err != nil {
			return err
		}
		return m.writeReason(ctx, now, reason)
	})
}

// writeReason writes the condition once. The error is a conflict where the claim has changed
// since it was read.
func (m *marker) writeReason(ctx context.Context, claim *karpv1.NodeClaim, reason string) error {
	stored := claim.DeepCopy()
	conditions := claim.StatusConditions(status.WithClock(m.clock))
	if reason == "" {
		_ = conditions.Clear(karpv1.ConditionTypeDisruptionReason) // it is no condition that the others hang on
	} else {
		conditions.SetTrueWithReason(karpv1.ConditionTypeDisruptionReason, reason, reason)
	}
	if equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		return nil
	}
	// Like lists of taints, a list of conditions is replaced as a whole.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	return ignoreGone(m.kube.Status().Patch(ctx, claim, patch), "writing the status of NodeClaim "+claim.Name)
}

// admitPods lets nodes take pods again.
func (m *marker) admitPods(ctx context.Context, nodes []Removed) error {
	if err := each(ctx, nodes, func(ctx context.Context, r Removed) error { return m.taint(ctx, r.Node, false) }); err != nil {
		return err
	}
	return each(ctx, nodes, func(ctx context.Context, r Removed) error { return m.condition(ctx, r.Claim, "") })
}

// clear makes a node ordinary that is part of no command. Errors are logged: the
// caller comes again.
func (m *marker) clear(ctx context.Context, r Removed) {
	var err error
	if r.Node != "" {
		err = m.taint(ctx, r.Node, false)
	}
	err = errors.Join(err, m.condition(ctx, r.Claim, ""), m.annotate(ctx, r.Claim, ""))
	if logger := log.FromContext(ctx); err == nil {
		logger.Info("freed a node that nothing is disrupting", "Node", r.Node, "NodeClaim", r.Claim)
	} else if ctx.Err() == nil {
		logger.Error(err, "freeing a node that nothing is disrupting failed, trying again", "Node", r.Node, "NodeClaim", r.Claim)
	}
}

// claim returns a copy of a claim that exists and is not being deleted, or nil, as the cache
// has it.
func (m *marker) claim(ctx context.Context, name string) (*karpv1.NodeClaim, error) {
	return readClaim(ctx, m.kube, name)
}

func readClaim(ctx context.Context, reader client.Reader, name string) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
		return nil, ignoreGone(err, "reading NodeClaim "+name)
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return claim, nil
}

func ignoreGone(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
