package cloudprovider

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/ledger"
)

// accounts are a ledger beside a port: claims go in as informers would deliver them.
type accounts struct {
	t      *testing.T
	w      *world
	store  *fleet.Store
	mirror *kube.Mirror
	book   *ledger.Book
	gone   map[string]time.Time
}

func newAccounts(t *testing.T, w *world) *accounts {
	t.Helper()
	store := fleet.NewStore()
	a := &accounts{t: t, w: w, store: store, mirror: kube.NewMirror(store, kube.Settings{}), book: ledger.NewBook(nil), gone: map[string]time.Time{}}
	p := pool()
	if err := w.kube.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	a.mirror.Apply(p)
	a.observe(t.Context())
	return a
}

func (a *accounts) observe(ctx context.Context) {
	a.t.Helper()
	look, err := ledger.LookAt(ctx, a.store.Snapshot(), a.w.port, ledger.Settings{Now: time.Now(), Gone: a.gone})
	if err != nil {
		a.t.Fatal(err)
	}
	a.book.Observe(look)
}

// pass lets time pass, with a look every five seconds.
func (a *accounts) pass(d time.Duration) {
	a.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(5 * time.Second)
		a.observe(a.t.Context())
	}
}

// buy creates the machine of a claim, as Karpenter's lifecycle does.
func (a *accounts) buy(name string, requirements ...karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodeClaim {
	a.t.Helper()
	c := claim(name, requirements...)
	c.CreationTimestamp = metav1.Now()
	created, err := a.w.port.Create(a.t.Context(), c)
	if err != nil {
		a.t.Fatal(err)
	}
	created.Labels[karpv1.NodePoolLabelKey] = "general"
	a.mirror.Apply(created)
	return created
}

// giveBack deletes it, and its claim when the machine is not found any more.
func (a *accounts) giveBack(c *karpv1.NodeClaim) {
	a.t.Helper()
	for {
		err := a.w.port.Delete(a.t.Context(), c)
		if karpcloud.IsNodeClaimNotFoundError(err) {
			break
		}
		if err != nil {
			a.t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	a.gone[c.Name] = time.Now()
	a.mirror.Delete(c)
}

// The ledger's sum is what the simulated Azure billed, by its own audit log and price
// lists: machines that come and go, spot and on-demand, with managed and local disks.
func TestLedgerIsWhatAzureBills(t *testing.T) {
	for _, mode := range []string{"virtual machines", "AKS machines"} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restart(t, func(c *config.Config) {
					c.Cloud.RetailPrices = armtest.Endpoint + "/api/retail/prices"
					if mode == "AKS machines" {
						w.aksMachines(c)
					}
				})
				time.Sleep(time.Minute) // until prices are read
				a := newAccounts(t, w)
				onDemand, spot := need(karpv1.CapacityTypeLabelKey, "on-demand"), need(karpv1.CapacityTypeLabelKey, "spot")
				var claims []*karpv1.NodeClaim
				for i, size := range []string{"Standard_D4s_v5", "Standard_D8ads_v5", "Standard_D4_v5", "Standard_E4s_v5"} {
					claims = append(claims, a.buy(fmt.Sprint("general-", i), need(corev1.LabelInstanceTypeStable, size), onDemand))
					a.pass(time.Minute)
				}
				claims = append(claims, a.buy("general-spot", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), spot))
				a.pass(20 * time.Minute)
				for _, c := range claims[:2] {
					a.giveBack(c)
					a.pass(3 * time.Minute)
				}
				a.pass(10 * time.Minute)
				a.observe(t.Context())
				bill, sum := w.Server.Bill(), a.book.Cost()
				t.Logf("billed $%.4f (machines $%.4f, disks $%.4f), ledger $%.4f (machines $%.4f, disks $%.4f)",
					bill.Total(), bill.Machines, bill.Disks, sum.Total(), sum.Machine, sum.Disk)
				for what, both := range map[string][2]float64{
					"all": {sum.Total(), bill.Total()}, "machines": {sum.Machine, bill.Machines}, "disks": {sum.Disk, bill.Disks},
				} {
					if both[1] <= 0 || math.Abs(both[0]/both[1]-1) > 0.01 {
						t.Errorf("%s: the ledger has $%.6f, Azure billed $%.6f", what, both[0], both[1])
					}
				}
				if len(a.book.Ended) != 2 || len(a.book.Open) != 3 {
					t.Errorf("%d machines ended and %d are there, want 2 and 3", len(a.book.Ended), len(a.book.Open))
				}
			})
		})
	}
}

// What was paid beside what was planned is on the claim, and told where it differs.
func TestPaidPriceIsOnTheClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := pool()
		p.Annotations = map[string]string{v1beta1.AnnotationNodeCost: "0.10"}
		if err := w.kube.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		c := claim("general-a", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
		c.Annotations = map[string]string{v1beta1.AnnotationPlannedPrice: "0.2"}
		created, err := w.port.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := created.Annotations[v1beta1.AnnotationPaidPrice]; got != "0.319" {
			t.Errorf("the paid price is %q, want 0.319: 0.192 for the machine, 0.027 for its disk, 0.10 for the node", got)
		}
		if got := created.Annotations[v1beta1.AnnotationDiskPrice]; got != "0.027" {
			t.Errorf("the price of the disk is %q, want 0.027", got)
		}
		if _, err := time.Parse(time.RFC3339, created.Annotations[v1beta1.AnnotationBilledSince]); err != nil {
			t.Error(err)
		}
		want := "PriceDiffers: Standard_D4s_v5 on-demand was bought at $0.319/h instead of the planned $0.200/h (+60%): " +
			"Azure refused what was cheaper, or prices have changed"
		if !slices.Contains(w.events.all(), want) {
			t.Errorf("the events are %q", w.events.all())
		}
		if want = "Provisioned: Standard_D4s_v5 on-demand in eastus-"; !slices.ContainsFunc(w.events.all(), func(e string) bool {
			return strings.HasPrefix(e, want) && strings.HasSuffix(e, " was bought at $0.319/h")
		}) {
			t.Errorf("the events are %q, want %q", w.events.all(), want)
		}
	})
}

// A machine that costs more than its claim may pay is not bought: the claim ends as one does
// for which Azure has nothing, and the provisioning is told. The price is that of the node.
func TestDearMachineIsNotBought(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := pool()
		p.Annotations = map[string]string{v1beta1.AnnotationNodeCost: "0.10"}
		if err := w.kube.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		var told []string
		w.port.WatchUnsold(func(c *karpv1.NodeClaim) { told = append(told, c.Name) })
		buy := func(name, most string) error {
			c := claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
			c.Annotations = map[string]string{v1beta1.AnnotationMostPrice: most}
			_, err := w.port.Create(t.Context(), c)
			return err
		}
		if err := buy("general-a", "0.318"); !karpcloud.IsInsufficientCapacityError(err) || !slices.Equal(told, []string{"general-a"}) {
			t.Errorf("at most $0.318 for what costs $0.319: %v, told of %v", err, told)
		}
		if n := w.Server.Stats()["calls Microsoft.Compute/virtualMachines/write"]; n != 0 {
			t.Errorf("Azure was asked %d times", n)
		}
		for _, wrong := range []string{"dear", "NaN", "-1"} {
			if err := buy("general-b", wrong); err == nil || karpcloud.IsInsufficientCapacityError(err) {
				t.Errorf("the limit %s, which is no price: %v", wrong, err)
			}
		}
		if err := buy("general-b", "0"); !karpcloud.IsInsufficientCapacityError(err) {
			t.Errorf("a limit of nothing: %v", err)
		}
		told = []string{"general-a"}
		if err := buy("general-c", "0.319"); err != nil || len(told) != 1 {
			t.Errorf("at most $0.319: %v, told of %v", err, told)
		}
	})
}
