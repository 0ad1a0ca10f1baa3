package providertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

func TestGarbageCollectionAfterKillRemovesOrphans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
			t.Errorf("a young machine: removed %v, %v, want none", removed, err)
		}
		time.Sleep(6 * time.Minute)
		claimed := func(context.Context) (map[string]bool, error) { return map[string]bool{"general-abc12": true}, nil }
		if removed, err := w.provider.CollectMachines(t.Context(), claimed); err != nil || len(removed) != 0 {
			t.Errorf("a claimed machine: removed %v, %v, want none", removed, err)
		}
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 1 {
			t.Errorf("an orphan: removed %v, %v, want one", removed, err)
		}
		time.Sleep(10 * time.Minute)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestGarbageCollectionRemovesOrphanedInterface(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, kill := context.WithCancelCause(t.Context())
		healthy := w.HTTP
		w.stop()
		w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, "/networkinterfaces/", kill}}
		w.start(t)
		if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
			t.Fatal("the launch survived its kill")
		}
		w.stop()
		w.HTTP = healthy
		w.start(t)
		time.Sleep(time.Minute)
		removed, err := w.provider.CollectNICs(t.Context(), noClaims)
		if err != nil || len(removed) != 1 {
			t.Errorf("removed %v, %v, want one", removed, err)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
		const lists = "calls Microsoft.Network/networkInterfaces/read"
		before := w.Server.Stats()[lists]
		if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
			t.Fatal(err)
		}
		if n := w.Server.Stats()[lists] - before; n != 1 {
			t.Errorf("the interfaces were listed %d times, want once", n)
		}
	}, armtest.Realistic)
}

func TestTrap10VMOfClaimWithoutPoolListedAndCollected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		order := w.order("standalone", onDemand())
		order.Pool = ""
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		machines, err := w.provider.List(t.Context())
		if err != nil || len(machines) != 1 || machines[0].Claim != "standalone" {
			t.Fatalf("listed are %+v, %v; want the machine of the claim", machines, err)
		}
		time.Sleep(6 * time.Minute)
		removed, err := w.provider.CollectMachines(t.Context(), noClaims)
		if err != nil || len(removed) != 1 {
			t.Errorf("collected are %v, %v; want the one machine", removed, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestForeignVMIsNotTouched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.config.ClusterName = "another"
		w.start(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); !errors.Is(err, launch.ErrForeign) {
			t.Errorf("launching under a taken name: %v", err)
		}
		if err := w.provider.Delete(t.Context(), "general-abc12", ""); !errors.Is(err, launch.ErrForeign) {
			t.Errorf("deleting another cluster's machine: %v", err)
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("List shows %v, %v", list, err)
		}
		time.Sleep(time.Hour)
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
			t.Errorf("collected %v, %v", removed, err)
		}
	})
}

func TestVMWithoutTagsIsFoundAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"general-abc12", "general-xyz34"} {
			if _, err := w.provider.Launch(t.Context(), w.order(name, onDemand())); err != nil {
				t.Fatal(err)
			}
			w.loseTags(t, "Microsoft.Compute/virtualMachines/aks-"+name)
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("without their tags %d machines are listed, %v", len(list), err)
		}
		// One has a NodeClaim: it is healed at once. The other may be young.
		if removed, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12")); err != nil || len(removed) != 0 {
			t.Fatalf("removed %v, %v", removed, err)
		}
		if got := w.claimsListed(t); got != "general-abc12" {
			t.Errorf("listed are %v, want the claimed one healed", got)
		}
		time.Sleep(61 * time.Minute)
		var removed []string
		for range 2 { // found, then collected
			got, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12"))
			if err != nil {
				t.Fatal(err)
			}
			removed = append(removed, got...)
		}
		if !slices.Equal(removed, []string{"general-xyz34"}) {
			t.Errorf("removed %v, want the one that nobody claims", removed)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// Machines without tags are looked for when some NodeClaim has no machine, and else every
// ten minutes: that is one more list of all machines.
func TestUntaggedVMsAreSeldomLookedForAtRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		noted := w.noting(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			after time.Duration
			live  func(context.Context) (map[string]bool, error)
			want  int // lists of virtual machines
		}{
			{0, claimed("general-abc12"), 2},
			{2 * time.Minute, claimed("general-abc12"), 1},
			{2 * time.Minute, claimed("general-abc12", "general-xyz34"), 2}, // one has lost its tags, or is not made yet
			{2 * time.Minute, claimed("general-abc12"), 1},
			{8 * time.Minute, claimed("general-abc12"), 2},
		} {
			time.Sleep(step.after)
			before := noted.ending("/providers/microsoft.compute/virtualmachines")
			if _, err := w.provider.CollectMachines(t.Context(), step.live); err != nil {
				t.Fatal(err)
			}
			if got := noted.ending("/providers/microsoft.compute/virtualmachines") - before; got != step.want {
				t.Errorf("step %d: %d lists of virtual machines, want %d", i, got, step.want)
			}
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// TestMachinesAreListedOnceForAll: by Karpenter's collector of NodeClaims, whose list serves
// nap's own as long as there is nothing to do by it. Where there is, it is done by a new one.
func TestMachinesAreListedOnceForAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		inUse := claimed("general-abc12")
		collect := func(live func(context.Context) (map[string]bool, error), removed int) int64 {
			t.Helper()
			const lists = "calls Microsoft.Compute/virtualMachines/read"
			before := w.Server.Stats()[lists]
			if got, err := w.provider.CollectMachines(t.Context(), live); err != nil || len(got) != removed {
				t.Errorf("removed %v, %v, want %d", got, err, removed)
			}
			return w.Server.Stats()[lists] - before
		}
		collect(inUse, 0) // the first looks for machines without tags, too
		for range 4 {
			time.Sleep(2 * time.Minute)
			if _, err := w.provider.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if n := collect(inUse, 0); n != 0 {
				t.Errorf("listed %d times although it was a second ago", n)
			}
		}
		if n := collect(noClaims, 1); n == 0 {
			t.Error("a machine is removed by a list that is some time old")
		}
		time.Sleep(10 * time.Minute)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestVMOfUncertainOwnerIsNotAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// Names of AKS, names that people give, and a machine of another cluster.
		for _, name := range []string{"nodepool1-12345678-vmss00000a", "jumpbox", "general-abc12"} {
			if _, err := w.provider.Launch(t.Context(), w.order(name, onDemand())); err != nil {
				t.Fatal(err)
			}
			w.loseTags(t, "Microsoft.Compute/virtualMachines/aks-"+name)
		}
		w.send(t, http.MethodPatch, "Microsoft.Compute/virtualMachines/aks-general-abc12", `{"tags": {"karpenter.azure.com_cluster": "another"}}`)
		time.Sleep(24 * time.Hour)
		for range 3 {
			if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
				t.Errorf("removed %v, %v, want none", removed, err)
			}
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("adopted %v, %v, want none", list, err)
		}
	})
}

func TestInterfaceWithoutTagsCollectedAfterOneHour(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, kill := context.WithCancelCause(t.Context())
		healthy := w.HTTP
		w.stop()
		w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, "/networkinterfaces/", kill}}
		w.start(t)
		if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
			t.Fatal("the launch survived its kill")
		}
		w.stop()
		w.HTTP = healthy
		w.start(t)
		w.loseTags(t, "Microsoft.Network/networkInterfaces/aks-general-abc12")
		collect := func() []string {
			t.Helper()
			removed, err := w.provider.CollectNICs(t.Context(), noClaims)
			if err != nil {
				t.Fatal(err)
			}
			return removed
		}
		if got := collect(); len(got) != 0 {
			t.Errorf("removed %v at once", got)
		}
		time.Sleep(61 * time.Minute)
		if got := append(collect(), collect()...); !slices.Equal(got, []string{"general-abc12"}) {
			t.Errorf("after an hour removed %v", got)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
	})
}
