package cloudprovider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The price of what the tests buy: $0.192/h for the machine and $0.027/h for its disk.
const priceOfD4s = 219_000

// limited writes a NodePool with a limit in dollars, and as many claims for D4s_v5.
func limited(t *testing.T, w *world, limit, planned string, count int, change func(*karpv1.NodePool)) []*karpv1.NodeClaim {
	t.Helper()
	p := pool()
	p.Annotations = map[string]string{v1beta1.AnnotationMaxHourlyCost: limit}
	if change != nil {
		change(p)
	}
	if err := w.kube.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var claims []*karpv1.NodeClaim
	for i := range count {
		c := claim(fmt.Sprint("general-", i), need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
		if planned != "" {
			c.Annotations = map[string]string{v1beta1.AnnotationPlannedPrice: planned}
		}
		if err := w.kube.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c)
	}
	return claims
}

// buyAll creates the machines of claims at the same time, and writes those that are bought
// as the lifecycle controller does. It returns the errors of the others.
func buyAll(t *testing.T, w *world, claims []*karpv1.NodeClaim) (bought []*karpv1.NodeClaim, failed []error) {
	t.Helper()
	made, errs := make([]*karpv1.NodeClaim, len(claims)), make([]error, len(claims))
	var group sync.WaitGroup
	for i, c := range claims {
		group.Go(func() { made[i], errs[i] = w.port.Create(t.Context(), c) })
	}
	group.Wait()
	for i, c := range claims {
		if errs[i] != nil {
			failed = append(failed, errs[i])
			continue
		}
		c.Annotations, c.Status = made[i].Annotations, made[i].Status
		for k, v := range made[i].Labels {
			c.Labels[k] = v
		}
		if err := w.kube.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		bought = append(bought, c)
	}
	return bought, failed
}

// Whatever plans say and however many launches are under way, the machines of a NodePool
// never cost more than its limit.
func TestPurchasesAtOnceStayWithinLimitInDollars(t *testing.T) {
	for name, planned := range map[string]string{"planned too cheap": "0.01", "not planned": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				claims := limited(t, w, "0.60", planned, 6, nil)
				bought, failed := buyAll(t, w, claims)
				if len(bought) != 2 || len(failed) != 4 {
					t.Fatalf("%d machines were bought, want 2 of $0.219/h each within $0.60/h: %v", len(bought), failed)
				}
				for _, err := range failed {
					if !karpcloud.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), "the limit of $0.600/h of NodePool general leaves") {
						t.Errorf("the claim does not end with the limit as its reason: %v", err)
					}
				}
				if !slices.ContainsFunc(w.events.all(), func(e string) bool {
					return strings.HasPrefix(e, "LimitReached: No machine is bought: the limit of $0.600/h")
				}) {
					t.Errorf("the events are %q", w.events.all())
				}
				if _, failed := buyAll(t, w, claims[:1]); (len(failed) > 0) != (claims[0].Status.ProviderID == "") {
					t.Error("a claim that has its machine was not given it again")
				}
			})
		})
	}
}

func TestMachineThatGoesCountsUntilItIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claims := limited(t, w, "0.25", "", 2, nil)
		first, _ := buyAll(t, w, claims[:1])
		if len(first) != 1 {
			t.Fatal("the first machine fits and was not bought")
		}
		if err := w.port.Delete(t.Context(), first[0]); err != nil {
			t.Fatal(err)
		}
		if bought, _ := buyAll(t, w, claims[1:]); len(bought) > 0 {
			t.Error("a second machine was bought while the first is there")
		}
		if err := w.kube.Delete(t.Context(), first[0]); err != nil {
			t.Fatal(err)
		}
		if bought, failed := buyAll(t, w, claims[1:]); len(bought) != 1 {
			t.Errorf("a second machine was not bought when the first was gone: %v", failed)
		}
	})
}

func TestClaimsUnderUnreadableLimitBuyNothing(t *testing.T) {
	for _, value := range []string{"much", "", "-1", "1e3", "NaN", "Inf", "12,50", "$12.50", "0x10", "2000000"} {
		inWorld(t, func(t *testing.T, w *world) {
			bought, failed := buyAll(t, w, limited(t, w, value, "", 1, nil))
			want := fmt.Sprintf("metadata.annotations[karpenter.azure.com/max-hourly-cost]: got %q, allowed: dollars per hour", value)
			if len(bought) > 0 || !strings.Contains(failed[0].Error(), want) {
				t.Errorf("with the limit %q: %d bought, %v", value, len(bought), failed)
			}
		})
	}
}

// The claim of a NodePool of fixed size is not given up and made again, but waits.
func TestClaimOfFixedSizePoolWaitsAtLimitInDollars(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claims := limited(t, w, "0.30", "", 2, func(p *karpv1.NodePool) { p.Spec.Replicas = ptr(int64(2)) })
		bought, failed := buyAll(t, w, claims)
		if len(bought) != 1 || len(failed) != 1 {
			t.Fatalf("%d were bought, want 1: %v", len(bought), failed)
		}
		var waits *karpcloud.CreateError
		if !errors.As(failed[0], &waits) || waits.ConditionReason != ReasonLimitReached || karpcloud.IsInsufficientCapacityError(failed[0]) {
			t.Errorf("the claim fails with %v", failed[0])
		}
	})
}

// What a node costs beside its machine counts in the limit.
func TestNodeCostCountsInLimitInDollars(t *testing.T) {
	for limit, want := range map[string]int{"0.318": 0, "0.319": 1} {
		inWorld(t, func(t *testing.T, w *world) {
			claims := limited(t, w, limit, "0.319", 1, func(p *karpv1.NodePool) { p.Annotations[v1beta1.AnnotationNodeCost] = "0.10" })
			if bought, failed := buyAll(t, w, claims); len(bought) != want {
				t.Errorf("with a limit of $%s/h %d were bought, want %d, for one costs %s: %v", limit, len(bought), want,
					model.Money(priceOfD4s)+model.USD(0.10), failed)
			}
		})
	}
}

// What a machine counts for is what it may cost while it is bought, then the price of its
// offering with the disk that it has, then what was paid, and before it is bought what was planned.
func TestCostOfOtherMachinesOfTheNodePool(t *testing.T) {
	catalog := &instancetype.Built{Catalog: model.Catalog{InstanceTypes: []model.InstanceType{
		{Name: "small", Offerings: []model.Offering{
			{Zone: "eastus-1", CapacityType: model.OnDemand, Price: model.USD(1), DiskPrice: model.USD(0.25)},
			{Zone: "eastus-2", CapacityType: model.OnDemand, Price: model.USD(2)},
			{Zone: "eastus-2", CapacityType: model.Spot, Price: model.USD(3)},
		}},
		{Name: "large", Offerings: []model.Offering{{Zone: "eastus-1", CapacityType: model.Spot, Price: model.USD(4)}}},
	}}}
	costs := costLimits{granted: map[string]model.Money{"granted": model.USD(9)}}
	buy := &purchase{order: &azure.Order{Catalog: catalog}, pool: pool(), priceOf: func(claim string, o *model.Offering) model.Money {
		if claim == "paid in advance" {
			return o.DiskPrice + model.USD(0.125)
		}
		return o.Price
	}}
	for _, c := range []struct {
		name, size, zone, capacity string
		paid, planned, disk        string
		bought                     bool
		want                       float64 // 0 for unknown
	}{
		{"granted", "small", "eastus-1", "on-demand", "8", "7", "", true, 9},
		{"of an offering", "small", "eastus-1", "on-demand", "8", "7", "", true, 1},
		{"paid in advance", "small", "eastus-1", "on-demand", "8", "7", "", true, 0.375},
		{"with a cheaper disk", "small", "eastus-1", "on-demand", "8", "7", "0.125", true, 0.875},
		{"with an ephemeral disk", "small", "eastus-1", "on-demand", "8", "7", "0", true, 0.75},
		{"of another zone", "small", "eastus-2", "on-demand", "8", "7", "", true, 2},
		{"on spot", "small", "eastus-2", "spot", "8", "7", "", true, 3},
		{"of another size", "large", "eastus-1", "spot", "8", "7", "", true, 4},
		{"not sold there any more, paid for", "large", "eastus-2", "spot", "6", "7", "", true, 6},
		{"not sold any more, planned", "gone", "eastus-1", "spot", "", "7", "", true, 7},
		{"not sold any more", "gone", "eastus-1", "spot", "", "", "", true, 0},
		{"not bought yet", "", "", "", "", "7", "", false, 7},
	} {
		other := claim(c.name)
		other.Labels = map[string]string{model.LabelInstanceType: c.size, model.LabelZone: c.zone, model.LabelCapacityType: c.capacity}
		other.Annotations = map[string]string{
			v1beta1.AnnotationPaidPrice: c.paid, v1beta1.AnnotationPlannedPrice: c.planned, v1beta1.AnnotationDiskPrice: c.disk,
		}
		if c.bought {
			other.Status.ProviderID = "azure:///x"
		}
		if got, known := costs.cost(other, buy); known != (c.want > 0) || got != model.USD(c.want) {
			t.Errorf("%s: %s, known %t, want $%v", c.name, got, known, c.want)
		}
	}
	// Its claim says it by now.
	settled := claim("granted")
	settled.Annotations = map[string]string{v1beta1.AnnotationPaidPrice: "1"}
	if costs.tidy("general", []karpv1.NodeClaim{*settled}); len(costs.granted) != 0 {
		t.Errorf("remembered are %v, want none", costs.granted)
	}
}

// A claim may get what is dear, and gets what is cheap: only that counts from then on, also
// while the claim does not say it yet.
func TestBoughtMachineCountsWithItsOwnPrice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := limited(t, w, "0.60", "0.50", 1, nil)[0]
		first.Spec.Requirements[0].Values = []string{"Standard_D4s_v5", "Standard_D8s_v5"}
		if _, err := w.port.Create(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := claim("general-1", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
		if _, err := w.port.Create(t.Context(), second); err != nil {
			t.Errorf("the second of two machines of $0.219/h within $0.60/h: %v", err)
		}
	})
}

// A machine without a known cost leaves nothing to buy with.
func TestUnknownCostLeavesNothingToBuyWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claims := limited(t, w, "100", "", 2, nil)
		claims[0].Status.ProviderID = "azure:///x"
		if err := w.kube.Update(t.Context(), claims[0]); err != nil {
			t.Fatal(err)
		}
		_, failed := buyAll(t, w, claims[1:])
		if len(failed) != 1 || !strings.Contains(failed[0].Error(), "what NodeClaim general-0 costs is not known") {
			t.Errorf("failed: %v", failed)
		}
	})
}

// Of what a plan allows and what the limit leaves the smaller counts.
func TestLimitInDollarsAndMostPriceHoldBoth(t *testing.T) {
	for _, c := range []struct {
		limit, most string
		bought      int
	}{{"10", "0.2", 0}, {"0.1", "10", 0}, {"10", "0.22", 1}} {
		inWorld(t, func(t *testing.T, w *world) {
			claims := limited(t, w, c.limit, "0.219", 1, nil)
			claims[0].Annotations[v1beta1.AnnotationMostPrice] = c.most
			if bought, failed := buyAll(t, w, claims); len(bought) != c.bought {
				t.Errorf("within $%s/h at most $%s/h: %d bought, %v", c.limit, c.most, len(bought), failed)
			}
		})
	}
}

// A limit that cannot be read lets nothing be bought, not even what costs nothing more.
func TestUnreadableLimitBuysNothingThatIsFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.prices = filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(w.prices, []byte("reservations: [{size: Standard_D4ds_v5, count: 2, hourly: 0}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.class.Spec.OSDiskSizeGB = ptr(int32(100)) // on the machine's own drive
		if err := w.kube.Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(*config.Config) {})
		w.resolve(t)
		claims := limited(t, w, "much", "", 1, nil)
		claims[0].Spec.Requirements[0].Values = []string{"Standard_D4ds_v5"}
		bought, failed := buyAll(t, w, claims)
		if len(bought) > 0 || !strings.Contains(failed[0].Error(), `got "much"`) {
			t.Errorf("%d bought: %v", len(bought), failed)
		}
	})
}
