package cloudprovider

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestMain(m *testing.M) {
	RegisterLabels()
	m.Run()
}

func TestClaimLifecycle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		created, err := w.port.Create(ctx,
			claim("general-abc12", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand")))
		if err != nil {
			t.Fatal(err)
		}
		s := created.Status
		if !strings.HasPrefix(s.ProviderID, "azure:///subscriptions/") || !strings.HasPrefix(s.ImageID, "/CommunityGalleries/") {
			t.Errorf("provider id %q, image %q", s.ProviderID, s.ImageID)
		}
		if got := s.Capacity.Memory().Value(); got != 15891378995 {
			t.Errorf("memory capacity %d, want 15891378995", got)
		}
		if got := s.Allocatable.Cpu().MilliValue(); got != 3860 {
			t.Errorf("allocatable CPU %dm, want 3860m", got)
		}
		for key, want := range map[string]string{
			corev1.LabelInstanceTypeStable: "Standard_D4s_v5", karpv1.CapacityTypeLabelKey: "on-demand", karpv1.NodePoolLabelKey: "general",
			instancetype.LabelSKUFamily: "D", corev1.LabelTopologyRegion: "eastus",
			instancetype.LabelPlacementScope: "zonal", instancetype.LabelAKSMode: "user",
		} {
			if created.Labels[key] != want {
				t.Errorf("label %s is %q, want %q", key, created.Labels[key], want)
			}
		}
		if created.Annotations[v1beta1.AnnotationHash] == "" {
			t.Error("the claim does not carry the hash of its class")
		}
		got, err := w.port.Get(ctx, s.ProviderID)
		if err != nil || got.Labels[corev1.LabelTopologyZone] != created.Labels[corev1.LabelTopologyZone] {
			t.Errorf("Get gives %+v, %v", got, err)
		}
		if list, err := w.port.List(ctx); err != nil || len(list) != 1 || list[0].Status.ProviderID != s.ProviderID {
			t.Errorf("List gives %v, %v", list, err)
		}
		created.Name = "general-abc12"
		for range 100 {
			if err = w.port.Delete(ctx, created); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if !karpcloud.IsNodeClaimNotFoundError(err) {
			t.Errorf("deleting ends with %v, want not found", err)
		}
		if _, err := w.port.Get(ctx, s.ProviderID); !karpcloud.IsNodeClaimNotFoundError(err) {
			t.Errorf("Get of a deleted machine: %v", err)
		}
		if leaks := w.Server.Leaks(); cmp.Diff(armsim.Inventory{}, leaks) != "" {
			t.Errorf("left in Azure: %+v", leaks)
		}
	})
}

func TestLaunchErrorsMapToKarpentersErrorTypes(t *testing.T) {
	size := need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5")
	od := need(karpv1.CapacityTypeLabelKey, "on-demand")
	zone := need(corev1.LabelTopologyZone, "eastus-1")
	createReason := func(err error) string {
		var e *karpcloud.CreateError
		if errors.As(err, &e) {
			return e.ConditionReason
		}
		return ""
	}
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if _, err := w.port.Create(ctx,
			claim("a", need(corev1.LabelInstanceTypeStable, "Standard_None"))); !karpcloud.IsInsufficientCapacityError(err) {
			t.Errorf("nothing to buy: %v, want insufficient capacity", err)
		}
		c := claim("b", size)
		c.Spec.Resources.Requests["example.com/fpga"] = resource.MustParse("1")
		if _, err := w.port.Create(ctx, c); !karpcloud.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), "example.com/fpga") {
			t.Errorf("a resource that no size has: %v", err)
		}
		c = claim("c", size)
		c.Spec.NodeClassRef.Name = "other"
		if _, err := w.port.Create(ctx, c); !karpcloud.IsInsufficientCapacityError(err) {
			t.Errorf("a missing class: %v, want insufficient capacity", err)
		}
		fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.port.Create(ctx, claim("d", size, od, zone)); !karpcloud.IsInsufficientCapacityError(err) ||
			!strings.Contains(err.Error(), "ZonalAllocationFailure: ") || !strings.Contains(err.Error(), "ZonalAllocationFailed") {
			t.Errorf("no capacity and nothing else to try: %v, want insufficient capacity", err)
		}
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.Network/networkInterfaces/write", Status: 400, Code: "SubnetIsFull", Message: "full",
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.port.Create(ctx, claim("e", size, od)); createReason(err) != "SubnetFull" {
			t.Errorf("a full subnet: %v, want a create error with reason SubnetFull", err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.class.Generation = 2
		w.class.Status.Conditions = nil
		if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		if _, err := w.port.Create(t.Context(), claim("a", size)); createReason(err) != "NodeClassReadinessUnknown" {
			t.Errorf("readiness unknown: %v", err)
		}
		w.class.StatusConditions().SetFalse(v1beta1.ConditionSubnetsReady, v1beta1.ReasonSubnetNotFound, "gone")
		if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		if _, err := w.port.Create(t.Context(), claim("a", size)); !karpcloud.IsNodeClassNotReadyError(err) {
			t.Errorf("not ready: %v", err)
		}
	})
}

func TestLateFailureDeletesClaimWithEvent(t *testing.T) {
	for _, code := range []string{"AllocationFailed", "VMExtensionProvisioningError", "OSProvisioningTimedOut", "InternalExecutionError"} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := claim("general-abc12", need(karpv1.CapacityTypeLabelKey, "on-demand"), need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"))
				if err := w.kube.Create(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: code, Message: "Not possible."}); err != nil {
					t.Fatal(err)
				}
				if _, err := w.port.Create(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				const disrupted = "karpenter_nodeclaims_disrupted_total"
				before := metricstest.Value(t, ctrlmetrics.Registry, disrupted, "async_provisioning")
				time.Sleep(5 * time.Minute)
				if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(c), c); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("the claim: %v, want it gone", err)
				}
				if n := metricstest.Value(t, ctrlmetrics.Registry, disrupted, "async_provisioning") - before; n != 1 {
					t.Errorf("%v disrupted claims are counted, want 1", n)
				}
				if len(w.events.all()) != 2 || !strings.HasPrefix(w.events.all()[0], "Provisioned: ") ||
					!strings.HasPrefix(w.events.all()[1], "AsyncProvisioningError: ") || !strings.Contains(w.events.all()[1], code+": Not possible.") {
					t.Errorf("events %q", w.events.all())
				}
				if leaks := w.Server.Leaks(); cmp.Diff(armsim.Inventory{}, leaks) != "" {
					t.Errorf("left in Azure: %+v", leaks)
				}
			}, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
		})
	}
}

// Karpenter buys any number of machines at the price of an offering: not at that of the
// few which are paid in advance.
func TestKarpenterSeesPriceBeyondReservations(t *testing.T) {
	it := &model.InstanceType{Name: "Standard_D2_v5", Capacity: make(model.Resources, len(instancetype.Axes())),
		Overhead: make(model.Resources, len(instancetype.Axes())), Offerings: []model.Offering{
			{CapacityType: model.OnDemand, Price: model.USD(0.01), Uncovered: model.USD(0.1), Available: true},
			{CapacityType: model.Spot, Price: model.USD(0.02), Available: true},
		}}
	got := instanceType(it, nil, newSharedParts())
	if got.Offerings[0].Price != 0.1 || got.Offerings[1].Price != 0.02 {
		t.Errorf("prices %v and %v, want 0.1 and 0.02", got.Offerings[0].Price, got.Offerings[1].Price)
	}
}

func TestInstanceTypesKeepLabelsAndUnavailableOfferings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		its, err := w.port.GetInstanceTypes(t.Context(), pool())
		if err != nil || len(its) < 300 {
			t.Fatalf("%d instance types, %v", len(its), err)
		}
		again, _ := w.port.GetInstanceTypes(t.Context(), pool())
		if &again[0] != &its[0] {
			t.Error("the instance types were converted again although nothing changed")
		}
		for _, it := range its {
			for key := range instancetype.KnownLabels() {
				if !it.Requirements.Has(key) {
					t.Fatalf("%s does not say anything about %s", it.Name, key)
				}
			}
		}
		i := slices.IndexFunc(its, func(it *karpcloud.InstanceType) bool { return it.Name == "Standard_D4s_v5" })
		d4 := its[i]
		allocatable := d4.Allocatable()
		if got := allocatable.Memory().Value(); got != 15891378995-(2662+750)<<20 {
			t.Errorf("allocatable memory %d", got)
		}
		if slots := d4.VolumeAttachmentLimits[instancetype.AzureDiskCSIDriver]; slots != 8 {
			t.Errorf("Karpenter may count on %d disks, the size attaches 8", slots)
		}
		gpu := scheduling.NewRequirements(scheduling.NewRequirement(instancetype.LabelSKUGPUName, corev1.NodeSelectorOpIn, "A100"))
		if d4.Requirements.Compatible(gpu, scheduling.AllowUndefinedWellKnownLabels) == nil {
			t.Error("a size without GPU satisfies a requirement for one")
		}
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5",
		}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.port.Create(t.Context(), claim("a", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"),
			need(corev1.LabelTopologyZone, "eastus-1"), need(karpv1.CapacityTypeLabelKey, "on-demand")))
		its, _ = w.port.GetInstanceTypes(t.Context(), pool())
		d4 = its[i]
		if !d4.Requirements.Get(corev1.LabelTopologyZone).Has("eastus-1") {
			t.Error("the zone label went with the capacity")
		}
		for _, o := range d4.Offerings {
			if o.Available == (o.Zone() == "eastus-1") {
				t.Errorf("offering %s %s: available %v", o.Zone(), o.CapacityType(), o.Available)
			}
		}
	}, func(c *armsim.Config) { c.Sizes = nil })
}

func TestPlannerCatalogHasDiskSlotsAndQuotas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.kube.Create(t.Context(), pool()); err != nil {
			t.Fatal(err)
		}
		c, err := w.port.Catalog(t.Context(), "general")
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := w.port.Catalog(t.Context(), "general"); again != c {
			t.Error("two calls without a change give two catalogues")
		}
		slots := 0
		for _, it := range c.InstanceTypes {
			slots += it.VolumeSlots[instancetype.AzureDiskCSIDriver]
		}
		if slots == 0 || !slices.ContainsFunc(c.Quotas, func(q model.Quota) bool { return q.Name == "cores" && q.Left > 0 }) {
			t.Errorf("%d disk slots, quotas %v", slots, c.Quotas)
		}
	})
}

// One plan may buy what is reserved and further machines of the same size: each has its price.
func TestPlannerSeesMachinesBeyondTheReservation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.kube.Create(t.Context(), pool()); err != nil {
			t.Fatal(err)
		}
		w.prices = filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(w.prices, []byte("reservations: [{size: Standard_D4s_v5, count: 2, hourly: 0.01}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(*config.Config) {})
		offerings := func(machines ...string) []model.Offering {
			store := fleet.NewStore()
			store.Put(&fleet.Pool{Name: "general", Ready: true, NodeLimit: -1})
			for _, name := range machines {
				store.Put(&fleet.Claim{
					Name: name, Pool: "general", ProviderID: "azure:///" + name, Allocatable: fleet.Amounts{CPU: 3860, Pods: 110},
					Labels: map[string]string{model.LabelInstanceType: "Standard_D4s_v5", model.LabelCapacityType: "on-demand"},
				})
			}
			in, err := store.Snapshot().Problem(t.Context(), w.port, fleet.Options{Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			types := in.Problem.Catalogs[0].InstanceTypes
			i := slices.IndexFunc(types, func(t model.InstanceType) bool { return t.Name == "Standard_D4s_v5" })
			return slices.DeleteFunc(slices.Clone(types[i].Offerings), func(o model.Offering) bool {
				return o.CapacityType != model.OnDemand || o.Zone != "eastus-1"
			})
		}
		got := offerings()
		if len(got) != 2 || got[0].MachinePrice() != model.USD(0.01) || got[0].Uncovered != got[1].Price ||
			got[1].Price <= got[0].Price || len(got[1].Quotas) != len(got[0].Quotas)-1 {
			t.Fatalf("two machines are reserved, and the planner sees %+v", got)
		}
		its, err := w.port.GetInstanceTypes(t.Context(), pool())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(its, func(it *karpcloud.InstanceType) bool { return it.Name == "Standard_D4s_v5" })
		if seen := map[string]bool{}; slices.ContainsFunc(its[i].Offerings, func(o *karpcloud.Offering) bool {
			key := o.Zone() + o.CapacityType()
			twice := seen[key]
			seen[key] = true
			return twice
		}) {
			t.Error("Karpenter, which does not count what is reserved, sees an offering twice")
		}
		for _, name := range []string{"a", "b"} {
			if _, err := w.port.Create(t.Context(), claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"),
				need(karpv1.CapacityTypeLabelKey, "on-demand"))); err != nil {
				t.Fatal(err)
			}
		}
		for _, when := range []string{"at once", "after a restart"} {
			if got := offerings("a", "b"); len(got) != 1 || got[0].Uncovered != 0 || got[0].MachinePrice() == model.USD(0.01) {
				t.Errorf("%s: what is reserved is used up, and the planner sees %+v", when, got)
			}
			w.restart(t, func(*config.Config) {})
		}
	})
}

func TestClassReadyOrNamesReason(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if !w.class.StatusConditions().Root().IsTrue() {
			t.Errorf("conditions %+v", w.class.Status.Conditions)
		}
		if got := or(w.class.Status.KubernetesVersion, ""); got != "1.35.1" {
			t.Errorf("version %q, want the control plane's without its suffix", got)
		}
		fips := v1beta1.FIPSModeFIPS
		swap, bad := "4Pi", w.SubnetID+"2"
		for _, tt := range []struct {
			reason string
			change func(*v1beta1.AKSNodeClassSpec)
		}{
			{v1beta1.ReasonSIGRequiredForFIPS, func(s *v1beta1.AKSNodeClassSpec) { s.FIPSMode = &fips }},
			{v1beta1.ReasonImagesNotFound, func(s *v1beta1.AKSNodeClassSpec) { v := "199001.01.0"; s.ImageVersion = &v }},
			{v1beta1.ReasonSubnetIDInvalid, func(s *v1beta1.AKSNodeClassSpec) { s.VNETSubnetID = &bad }},
			{"Unsupported", func(s *v1beta1.AKSNodeClassSpec) {
				s.LinuxOSConfig = &v1beta1.LinuxOSConfiguration{SwapFileSize: &swap}
			}},
		} {
			c := w.class.DeepCopy()
			tt.change(&c.Spec)
			_, images := w.port.Classes.Images(t.Context(), c)
			_, dns := w.port.Classes.LocalDNS(t.Context(), c)
			err := errors.Join(images, w.port.Classes.Subnet(t.Context(), c), dns, w.port.Classes.Validate(t.Context(), c))
			var failure *nodeclass.Failure
			if !errors.As(err, &failure) || failure.Reason != tt.reason || failure.Message == "" {
				t.Errorf("want reason %s and words, got %v", tt.reason, err)
			}
		}
	})
}

func TestClassSaysWhatPlainMachinesCannotBeTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.class.DeepCopy()
		version := "202401.01.0"
		old.Spec.ImageVersion = &version
		want := func(class *v1beta1.AKSNodeClass, text string) {
			t.Helper()
			err := w.port.Classes.Validate(t.Context(), class)
			var failure *nodeclass.Failure
			switch errors.As(err, &failure); {
			case text == "" && err != nil:
				t.Errorf("refused: %v", err)
			case text != "" && (failure == nil || failure.Reason != "Unsupported" || !strings.Contains(failure.Message, text)):
				t.Errorf("got %v, want %q", err, text)
			}
		}
		want(w.class, "")
		want(old, "spec.imageVersion 202401.01.0 is older than "+bootstrap.OldestImage)
		w.restart(t, func(c *config.Config) { c.Facts.CustomCAs = []string{"AAAA", "BBBB"} })
		want(w.class, "custom_ca_certs[0]: is not PEM certificates alone; custom_ca_certs[1]: is not PEM")
		w.restart(t, func(c *config.Config) {
			c.Facts.CustomCAs = slices.Repeat([]string{base64.StdEncoding.EncodeToString(c.ClusterCA)}, 60)
		})
		want(w.class, "custom data has")
		w.restart(t, func(c *config.Config) {
			w.aksMachines(c)
			c.ProvisionMode = config.ModeAKSMachines
		})
		want(w.class, "")
		want(old, "")
	})
}

func TestKubernetesVersionNeverDecreases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		newer := "1.36.0"
		w.class.Status.KubernetesVersion = &newer
		if got, err := w.port.Classes.KubernetesVersion(t.Context(), w.class); err != nil || got != newer {
			t.Errorf("version %q, %v; want %s", got, err, newer)
		}
	})
}

func TestGarbageCollectionOfMachinesWithoutClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kept := claim("kept", need(karpv1.CapacityTypeLabelKey, "on-demand"))
		if err := w.kube.Create(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*karpv1.NodeClaim{kept, claim("orphan", need(karpv1.CapacityTypeLabelKey, "on-demand"))} {
			if _, err := w.port.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if removed, err := w.port.Garbage.CollectMachines(t.Context()); err != nil || !slices.Equal(removed, []string{"orphan"}) {
			t.Errorf("collected %v, %v", removed, err)
		}
		if removed, err := w.port.Garbage.CollectNICs(t.Context()); err != nil || len(removed) != 0 {
			t.Errorf("collected interfaces of %v, %v", removed, err)
		}
	})
}
