package cloudprovider

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// remember runs the loop that keeps what the world's process knows.
func (w *world) remember(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		loop := &snapshot.Publisher{
			Reader: w.kube, Writer: w.kube, Clock: clock.RealClock{},
			Memory: map[string]snapshot.Source{snapshot.MemoryRefusals: w.port.azure.Unavailable()},
		}
		if err := loop.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Second)
	return func() { cancel(); group.Wait() }
}

func TestTrap5UnavailableOfferingsSurviveRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.remember(t)
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5",
		}); err != nil {
			t.Fatal(err)
		}
		ask := func(name string) error {
			_, err := w.port.Create(t.Context(), claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"),
				need(karpv1.CapacityTypeLabelKey, "on-demand"), need(corev1.LabelTopologyZone, "eastus-1")))
			return err
		}
		if err := ask("general-aaaaa"); !karpcloud.IsInsufficientCapacityError(err) {
			t.Fatalf("refused with %v", err)
		}
		time.Sleep(time.Minute) // it is written down
		stop()
		w.stop()
		w.start(t)
		stop = w.remember(t)
		err := ask("general-bbbbb")
		if !karpcloud.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), "ZonalAllocationFailed; it is asked again after") {
			t.Errorf("the next process: %v, want that it knows", err)
		}
		if n := w.Server.Faults()[0].Hits; n != 1 {
			t.Errorf("Azure was asked %d times, want once", n)
		}
		time.Sleep(time.Hour)
		if err := w.Server.RemoveFault(w.Server.Faults()[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := ask("general-bbbbb"); err != nil {
			t.Errorf("when the block is over: %v", err)
		}
		stop()
	})
}

func TestSpotEvictionBeforeRegistrationFailsClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		created, err := w.port.Create(t.Context(),
			claim("general-abc12", need(karpv1.CapacityTypeLabelKey, "spot"), need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultEvict}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := w.port.Get(t.Context(), created.Status.ProviderID); !karpcloud.IsNodeClaimNotFoundError(err) {
			t.Errorf("the claim's machine: %v, want not found, on which its claim is given up", err)
		}
		if list, err := w.port.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("listed are %v, %v", list, err)
		}
		created.Name = "general-abc12"
		if err := w.port.Delete(t.Context(), created); !karpcloud.IsNodeClaimNotFoundError(err) {
			t.Errorf("giving it back: %v", err)
		}
		if leaks := w.Server.Leaks(); len(leaks.VMs)+len(leaks.NICs)+len(leaks.Disks) != 0 {
			t.Errorf("left in Azure: %+v", leaks)
		}
	})
}

func TestClaimOfMissingClassFailsWithEvent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := claim("general-abc12")
		c.Spec.NodeClassRef.Name = "other"
		_, err := w.port.Create(t.Context(), c)
		if !karpcloud.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), `AKSNodeClass "other"`) {
			t.Errorf("got %v, want insufficient capacity that names the class", err)
		}
		if len(w.events.all()) != 1 || !strings.HasPrefix(w.events.all()[0], "NodeClassResolutionError: ") || !strings.Contains(w.events.all()[0], `"other"`) {
			t.Errorf("events %q", w.events.all())
		}
		if w.Server.Stats()["vm.accepted"] != 0 {
			t.Error("a machine was asked for")
		}
	})
}
