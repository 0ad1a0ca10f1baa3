// Package mode keeps the NodeAutoProvisioning of the cluster, by which nap is switched: it
// makes the object where it is missing, tells the loops in which mode they are, and writes
// into the status what there is to know at one glance, above all what blocks mode Manual.
// The definition of the object refuses that mode by this status. Start with [Keeper].
package mode

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/controller/prerequisitewatch"
)

// every is how often the keeper looks. It reads the cache alone.
const every = time.Second

// ReasonUnknown is why nothing is bought before the mode was read for the first time.
const ReasonUnknown = "ModeUnknown"

// Keeper keeps the one NodeAutoProvisioning. It is a manager's runnable that works on the
// leader alone; Finding may be asked from anywhere.
type Keeper struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Prerequisites and Token are why nothing could be bought in mode Auto; the zero value
	// while all is well.
	Prerequisites, Token func() outage.Finding
	// Checks is what the checks of all prerequisites found, those included which forbid
	// nothing.
	Checks func() prerequisitewatch.Report
	// OutboundType is how machines that are made now reach the internet; empty where the
	// cluster does not tell.
	OutboundType string
	// DefaultNodePools is whether an object that is made here wants default NodePools; where
	// it is empty, one in a cluster without NodePools does.
	DefaultNodePools v1alpha1.DefaultNodePools
	// Dataplane is the network dataplane of the cluster, such as cilium.
	Dataplane string
	// Changes counts the changes of NodeClaims and NodePools; where it is nil, all are read
	// at every look.
	Changes func() uint64

	// seen is the object as it was read last; nil before.
	seen atomic.Pointer[v1alpha1.NodeAutoProvisioning]
	// made are the default objects that have been there once.
	made []string
	// inventory is the last one, and defaults are the objects of Defaults; nil before.
	inventory *inventory
	defaults  []client.Object
}

// NeedLeaderElection makes the manager run the keeper on the leader alone.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the object until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	return periodic.Run(ctx, k.Clock, every, "keeping the NodeAutoProvisioning", k.look)
}

// Known reports whether the mode has been read.
func (k *Keeper) Known() bool { return k.seen.Load() != nil }

// Finding is why the mode lets nap buy and remove nothing; the zero value in mode Auto.
func (k *Keeper) Finding() outage.Finding {
	seen := k.seen.Load()
	switch {
	case seen == nil:
		return outage.Finding{Reason: ReasonUnknown, Message: "the mode of NodeAutoProvisioning default has not been read yet"}
	case seen.Spec.Mode == v1alpha1.ModeManual:
		return outage.Finding{Reason: v1alpha1.ReasonManual, Message: "mode Manual: nap buys nothing and removes nothing voluntarily; " +
			"spec.mode Auto of NodeAutoProvisioning default switches it on (nap enable)"}
	}
	return outage.Finding{}
}

// look reads the object, or makes it, and brings its status up to date.
func (k *Keeper) look(ctx context.Context) error {
	object := &v1alpha1.NodeAutoProvisioning{}
	err := k.Kube.Get(ctx, client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, object)
	if apierrors.IsNotFound(err) {
		return k.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading NodeAutoProvisioning %s: %w", v1alpha1.NodeAutoProvisioningName, err)
	}
	before := k.seen.Swap(object.DeepCopy())
	k.tell(before, object)
	stored := object.DeepCopy()
	if len(object.Status.DefaultsMade) < len(k.made) { // the object was deleted and made again, or a write was lost
		object.Status.DefaultsMade = slices.Clone(k.made)
	}
	if err := k.fill(ctx, object); err != nil {
		return err
	}
	k.made = slices.Clone(object.Status.DefaultsMade)
	_, err = periodic.WriteStatus(ctx, k.Kube, stored, object)
	return err
}

// create makes the object. One that was deleted while it is known is made as it was: a
// mode must not change because its object is gone for a second.
func (k *Keeper) create(ctx context.Context) error {
	object := &v1alpha1.NodeAutoProvisioning{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NodeAutoProvisioningName}}
	if seen := k.seen.Load(); seen != nil {
		object.Spec = seen.Spec
	} else {
		wanted, err := k.wanted(ctx)
		if err != nil {
			return err
		}
		object.Spec = v1alpha1.NodeAutoProvisioningSpec{Mode: v1alpha1.ModeAuto, DefaultNodePools: wanted}
	}
	if err := k.Kube.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making NodeAutoProvisioning %s: %w", object.Name, err)
	}
	return nil
}

// tell publishes that the mode is another one.
func (k *Keeper) tell(before, now *v1alpha1.NodeAutoProvisioning) {
	if before == nil || before.Spec.Mode == now.Spec.Mode {
		return
	}
	k.Recorder.Publish(event.Switched(now))
}

// fill writes into the status what is true now.
func (k *Keeper) fill(ctx context.Context, object *v1alpha1.NodeAutoProvisioning) error {
	have, err := k.take(ctx)
	if err != nil {
		return err
	}
	s := &object.Status
	s.Nodes, s.NodePools, s.DisableBlockedBy = have.nodes, have.pools, have.blockers
	s.ObservedGeneration = object.Generation
	s.Outbound = k.outbound(s.Outbound, have.oldest)
	k.conditions(object)
	k.write(object, have.upgraded)
	return k.makeDefaults(ctx, object)
}
