// Package cloudprovider is where Karpenter's controllers meet Azure: it implements
// Karpenter's CloudProvider on package azure, and converts Kubernetes objects to
// azure's values and back. Nothing else in nap knows both.
//
//	cloudprovider.RegisterLabels()                        // once per process, before any object is read
//	port := cloudprovider.New(kube, discovery, provider)  // takes over provider.OnFailed
//	port.Record(recorder)                             // events about late failures
//	controller.Cloud{Provider: port, Classes: port.Classes, Instances: port.Garbage.CollectMachines, Interfaces: port.Garbage.CollectNICs}
//
// provider.Run must run on the leader, see package azure.
//
//   - port.go: create, get, list, delete
//   - failure.go: what a refusal of Azure means to a NodeClaim
//   - paid.go: what a machine may cost, and costs
//   - costlimit.go: what the limit in dollars of its NodePool leaves for a machine
//   - class.go, order.go: API objects to azure's values
//   - labels.go: the labels of Azure's nodes
//   - garbage.go, inplace.go: machines without a claim, machines to be updated
//   - recorder.go: events
//   - overlays.go: what NodeOverlays make of catalogues
//   - types.go: azure's catalogue to Karpenter's instance types, and to the fleet's
//   - finder.go: the status of AKSNodeClasses
//   - localdns.go: whether machines run a DNS cache
//   - dns.go: where their pods ask for names
//   - drift.go: which machines are out of date
//   - maintenance.go: when that may have consequences
package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Port is Karpenter's view of Azure. It is safe for concurrent use. Its parts have
// their own state; what other rooms use directly is exported.
type Port struct {
	// Classes answers what AKSNodeClasses mean.
	Classes *ClassFinder
	// InPlace changes tags and identities of running machines.
	InPlace *InPlaceUpdater
	// Garbage deletes what no NodeClaim claims.
	Garbage *Collector

	kube     client.Client
	azure    *azure.Provider
	classes  classReader
	recorder *laterRecorder
	catalogs *catalogs
	windows  *windows
	leaving  departures
	// unsold is told of claims that end because nothing is left to buy for them, or nothing
	// at a price that they may have; nil is told nothing.
	unsold func(*karpv1.NodeClaim)
	costs  *costLimits
}

var _ karpcloud.CloudProvider = (*Port)(nil)

// New returns a port that reads NodePools, node classes and claims through kube,
// and the control plane's version from server. It takes over the provider's
// OnFailed.
func New(kube client.Client, server discovery.ServerVersionInterface, provider *azure.Provider) *Port {
	recorder := &laterRecorder{}
	window := &windows{azure: provider, recorder: recorder}
	p := &Port{
		kube: kube, azure: provider, classes: classReader{kube}, recorder: recorder, windows: window,
		catalogs: &catalogs{classes: classReader{kube}, azure: provider, converted: map[string]*converted{}},
		Classes: &ClassFinder{
			azure: provider, server: server, windows: window, recorder: recorder, dns: localDNS{azure: provider, direct: kube},
		},
		InPlace: &InPlaceUpdater{azure: provider}, costs: &costLimits{granted: map[string]model.Money{}},
		Garbage: &Collector{kube: kube, azure: provider},
	}
	provider.OnFailed(p.failedLate)
	return p
}

// Record makes the port publish events, as soon as there is a recorder.
func (p *Port) Record(r events.Recorder) { p.recorder.publishTo(r) }

// ReadDirectly sets how rarely needed objects are read, past any cache: a cache
// would watch all of their kind. Without it they are read like all others. Call it
// before anything else.
func (p *Port) ReadDirectly(r client.Reader) { p.Classes.dns.direct = r }

// MaintenanceMap sets how the ConfigMap of the next maintenance window is read;
// nil data mean that there is none. Call it before anything else.
func (p *Port) MaintenanceMap(read func(context.Context) (map[string]string, error)) {
	p.windows.configMap.read = read
}

// Maintenance reports whether the cluster's maintenance window is open at a moment,
// and until when that holds, zero for ever. Without a window it always is.
func (p *Port) Maintenance(ctx context.Context, now time.Time) (open bool, until time.Time, err error) {
	return p.windows.open(ctx, now)
}

// GetInstanceTypes is what a NodePool can buy, as Karpenter wants it. The types
// are shared between calls and must not be changed.
func (p *Port) GetInstanceTypes(ctx context.Context, pool *karpv1.NodePool) ([]*karpcloud.InstanceType, error) {
	return p.catalogs.instanceTypes(ctx, pool)
}

// Catalog is what a NodePool can buy, as the planner wants it: with data disk
// slots and quotas, which Karpenter's form cannot say. It implements
// fleet.Catalogs.
func (p *Port) Catalog(ctx context.Context, nodePool string) (*fleet.Catalog, error) {
	return p.catalogs.catalog(ctx, nodePool)
}

// Excluded says why a size that the region sells cannot be bought by a NodePool, or "".
func (p *Port) Excluded(ctx context.Context, pool *karpv1.NodePool) func(size string) string {
	return p.catalogs.excluded(ctx, pool)
}

// IsDrifted says why a claim's machine is out of date, or "". An old image counts
// within the maintenance window alone.
func (p *Port) IsDrifted(ctx context.Context, claim *karpv1.NodeClaim) (karpcloud.DriftReason, error) {
	d := drift{kube: p.kube, azure: p.azure, classes: p.classes, windows: p.windows}
	return d.reason(ctx, claim)
}

// Name is what metrics call the provider.
func (p *Port) Name() string { return "azure" }

// GetSupportedNodeClasses names the kind that NodePools may refer to.
func (p *Port) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1beta1.AKSNodeClass{}}
}

// Create buys the machine of a claim, or finds the one that it has.
func (p *Port) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	class, err := p.classes.get(ctx, claim.Spec.NodeClassRef)
	if apierrors.IsNotFound(err) {
		err := fmt.Errorf("AKSNodeClass %q does not exist or is being deleted", claim.Spec.NodeClassRef.Name)
		p.recorder.Publish(event.ClassMissing(claim, err))
		return nil, karpcloud.NewInsufficientCapacityError(err)
	}
	if err != nil {
		return nil, err
	}
	if err := ready(class); err != nil {
		return nil, err
	}
	value, err := usableClass(class)
	if err != nil {
		return nil, err
	}
	catalog, err := p.catalogs.buyable(ctx, claim.Labels[karpv1.NodePoolLabelKey], p.azure.Catalog(&value))
	if err != nil {
		return nil, err
	}
	order, err := OrderOf(claim, &value, catalog)
	if err != nil {
		return nil, karpcloud.NewInsufficientCapacityError(err)
	}
	if order.MostPrice, err = p.mostPrice(ctx, claim); err != nil {
		return nil, err
	}
	machine, err := p.launch(ctx, claim, order)
	if err != nil {
		if soldOut(err) && p.unsold != nil {
			p.unsold(claim)
		}
		if failure := unavailable.Classify(err); failure != nil && failure.Kind == unavailable.HostEncryptionOff {
			err = errors.Join(err, p.Classes.hostEncryptionRefused(ctx, p.kube, class, failure))
		}
		return nil, createError(err)
	}
	created := p.claimOf(machine)
	if t, o, ok := p.azure.Describe(catalog, machine); ok {
		created.Labels = azure.Labels(t, o, order.Requirements)
		created.Status.Capacity = resourceList(t.Capacity, catalog.Axes())
		created.Status.Allocatable = resourceList(t.Allocatable(), catalog.Axes())
		if machine.Pool != "" {
			created.Labels[karpv1.NodePoolLabelKey] = machine.Pool
		}
	}
	hash, err := class.Hash()
	if err != nil {
		return nil, err
	}
	created.Annotations = map[string]string{
		v1beta1.AnnotationHash: hash, v1beta1.AnnotationHashVersion: v1beta1.HashVersion,
		v1beta1.AnnotationInPlaceUpdateHash: p.InPlace.InPlaceHash(class),
	}
	if id, is := azure.AKSMachineID(p.azure.Config(), created.Status.ProviderID); is {
		created.Annotations[v1beta1.AnnotationAKSMachine] = id
	} else {
		created.Annotations[v1beta1.AnnotationSSHKeyHash] = azure.SSHKeyHash(p.azure.Config())
	}
	p.pay(ctx, claim, created, machine, catalog)
	return created, nil
}

// ready refuses a class whose status says that nothing can be bought with it.
func ready(class *v1beta1.AKSNodeClass) error {
	cond := class.StatusConditions().Get(status.ConditionReady)
	switch {
	case cond.IsFalse():
		return karpcloud.NewNodeClassNotReadyError(fmt.Errorf("AKSNodeClass %q: %s", class.Name, messages(class, metav1.ConditionFalse)))
	case cond.IsUnknown():
		message := fmt.Sprintf("it is not known yet whether AKSNodeClass %q is ready: %s", class.Name, messages(class, metav1.ConditionUnknown))
		return karpcloud.NewCreateError(errors.New(message), "NodeClassReadinessUnknown", message)
	}
	return nil
}

// messages are what the class's conditions of this status say, apart from the one
// that sums them up.
func messages(class *v1beta1.AKSNodeClass, is metav1.ConditionStatus) string {
	var out []string
	for _, c := range class.GetConditions() {
		if c.Status == is && c.Type != status.ConditionReady {
			out = append(out, c.Type+": "+c.Message)
		}
	}
	return strings.Join(out, "; ")
}

// Delete starts the removal of a claim's machine, and reports a claim without
// machine as not found.
func (p *Port) Delete(ctx context.Context, claim *karpv1.NodeClaim) error {
	name := claim.Name
	if name == "" {
		name, _ = launch.ClaimOfProviderID(claim.Status.ProviderID)
	}
	err := p.azure.Delete(ctx, name, claim.Status.ProviderID)
	p.leaving.asked(name, err)
	p.costs.forget(name) // until it is gone its claim says what it costs
	if errors.Is(err, launch.ErrNotFound) {
		return karpcloud.NewNodeClaimNotFoundError(fmt.Errorf("NodeClaim %s: %w", name, err))
	}
	if failure := unavailable.Classify(err); failure != nil && failure.Advice() != "" {
		// Karpenter asks again after pauses that grow to a minute; a person has to act.
		p.recorder.Publish(event.Undeletable(claim, failure.Reason(), failure.Code, failure.Advice()))
	}
	return err
}

// Get reads the machine behind a provider id.
func (p *Port) Get(ctx context.Context, providerID string) (*karpv1.NodeClaim, error) {
	m, err := p.azure.Find(ctx, providerID)
	if errors.Is(err, launch.ErrNotFound) {
		return nil, karpcloud.NewNodeClaimNotFoundError(fmt.Errorf("provider id %s: %w", providerID, err))
	}
	if err != nil {
		return nil, err
	}
	return p.claimOf(m), nil
}

// List reads all machines of the cluster.
func (p *Port) List(ctx context.Context) ([]*karpv1.NodeClaim, error) {
	machines, err := p.azure.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*karpv1.NodeClaim, len(machines))
	for i, m := range machines {
		out[i] = p.claimOf(m)
	}
	return out, nil
}

// claimOf describes a machine by what Azure alone says of it.
func (p *Port) claimOf(m launch.Machine) *karpv1.NodeClaim {
	zone := instancetype.ZoneLabel(p.azure.Config().Location, m.Zone)
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Claim,
			Labels: map[string]string{
				model.LabelInstanceType:    m.Size,
				model.LabelZone:            zone,
				model.LabelCapacityType:    string(m.CapacityType),
				corev1.LabelTopologyRegion: p.azure.Config().Location,
			},
			CreationTimestamp: metav1.Time{Time: m.Created},
		},
		Status: karpv1.NodeClaimStatus{ProviderID: m.ProviderID, ImageID: m.ImageID},
	}
	if m.Pool != "" {
		claim.Labels[karpv1.NodePoolLabelKey] = m.Pool
	}
	if m.State == launch.Deleting {
		claim.DeletionTimestamp = &metav1.Time{Time: m.Created.Add(time.Second)}
	}
	return claim
}

// RepairPolicies are the node conditions that make a node be rebooted or replaced, with how
// long each is tolerated and for how long the node's pods are then waited for. The first
// policy has no pattern for reasons: Karpenter takes it for every other condition here,
// should none of that condition's own patterns match.
//
// A reboot helps against what AKS's node problem detector finds in the kernel, the kubelet and
// the container runtime; its conditions are
// https://learn.microsoft.com/azure/aks/node-problem-detector.
func (p *Port) RepairPolicies() []karpcloud.RepairPolicy {
	const (
		toleration = 10 * time.Minute
		anyReason  = ".*"
		// drain is long enough for pods which end in good order, and an end for those
		// that a budget, an annotation or a silent kubelet would keep for ever.
		drain = 10 * time.Minute
		// notice is the least that Azure leaves a machine which it takes back.
		notice = 30 * time.Second
		// beforeReboot is for how long pods are waited for before a reboot, which those
		// that cannot be evicted live through.
		beforeReboot = 5 * time.Minute
	)
	policies := []karpcloud.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, TolerationDuration: toleration},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, ReasonRegex: anyReason, TolerationDuration: toleration},
		{ConditionType: "kubernetes.azure.com/NodeHealthy", ConditionStatus: corev1.ConditionFalse, ReasonRegex: anyReason},
		{ConditionType: "PreemptionScheduled", ConditionStatus: corev1.ConditionTrue, ReasonRegex: anyReason},
	}
	for i := range policies {
		bound := drain
		if policies[i].ConditionType == "PreemptionScheduled" {
			bound = notice
		}
		policies[i].Action, policies[i].TerminationGracePeriod = karpcloud.ReplaceNode, &bound
	}
	for _, c := range []corev1.NodeConditionType{"KernelDeadlock", "ReadonlyFilesystem", "KubeletProblem", "ContainerRuntimeProblem"} {
		policies = append(policies, karpcloud.RepairPolicy{
			ConditionType: c, ConditionStatus: corev1.ConditionTrue, ReasonRegex: anyReason, TolerationDuration: toleration,
			Action: karpcloud.RebootNode, TerminationGracePeriod: new(beforeReboot),
		})
	}
	return policies
}

// Reboot restarts a claim's machine in place, and returns once Azure has accepted. What a
// person has to mend first, such as a missing permission, is a
// *karpcloud.NodeRebootFailedError: Karpenter then replaces the node.
func (p *Port) Reboot(ctx context.Context, claim *karpv1.NodeClaim, _ string) error {
	err := p.azure.Boots().Restart(ctx, claim.Name)
	if errors.Is(err, launch.ErrNotFound) {
		return karpcloud.NewNodeClaimNotFoundError(fmt.Errorf("NodeClaim %s: %w", claim.Name, err))
	}
	if failure := unavailable.Classify(err); failure != nil && failure.Advice() != "" {
		p.recorder.Publish(event.Unrestartable(claim, failure.Reason(), failure.Code, failure.Advice()))
		return karpcloud.NewNodeRebootFailedError(err)
	}
	return err
}
