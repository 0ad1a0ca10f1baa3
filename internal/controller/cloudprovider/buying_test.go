package cloudprovider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

var errUnreadable = errors.New("the API server does not answer")

// unreadable makes the port unable to read objects of one kind.
func (w *world) unreadable(t *testing.T, kind client.Object) {
	t.Helper()
	kube, ok := w.kube.(client.WithWatch)
	if !ok {
		t.Fatal("the client cannot be intercepted")
	}
	scheme := kube.Scheme()
	of, _, err := scheme.ObjectKinds(kind)
	if err != nil {
		t.Fatal(err)
	}
	is := func(o client.Object) bool {
		kinds, _, err := scheme.ObjectKinds(o)
		return err == nil && kinds[0] == of[0]
	}
	broken := interceptor.NewClient(kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if is(o) {
				return errUnreadable
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, claims := list.(*karpv1.NodeClaimList); claims && is(&karpv1.NodeClaim{}) {
				return errUnreadable
			}
			return c.List(ctx, list, options...)
		},
	})
	w.port.kube, w.port.classes = broken, classReader{broken}
}

// Without the NodePool's limit, or what its other machines cost, or the class, nothing is known
// of what may be bought: the claim waits.
func TestNothingIsBoughtBlindly(t *testing.T) {
	for name, kind := range map[string]client.Object{"NodePool": &karpv1.NodePool{}, "NodeClaims": &karpv1.NodeClaim{}, "class": &v1beta1.AKSNodeClass{}} {
		inWorld(t, func(t *testing.T, w *world) {
			claims := limited(t, w, "10", "", 1, nil)
			w.unreadable(t, kind)
			if _, err := w.port.Create(t.Context(), claims[0]); !errors.Is(err, errUnreadable) || w.Server.Stats()["vm.accepted"] > 0 {
				t.Errorf("without the %s: %v, %d bought", name, err, w.Server.Stats()["vm.accepted"])
			}
		})
	}
}

// Nothing is replaced for a class that cannot be read, and that is an error, unlike a class
// that is gone.
func TestDriftIsNotGuessed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, fresh := w.aged(t)
		gone := fresh()
		gone.Spec.NodeClassRef.Name = "gone"
		w.wantDrift(t, "a class that is gone", gone, "")
		w.unreadable(t, &v1beta1.AKSNodeClass{})
		if reason, err := w.port.IsDrifted(t.Context(), fresh()); reason != "" || !errors.Is(err, errUnreadable) {
			t.Errorf("a class that cannot be read: %q, %v", reason, err)
		}
		w.unreadable(t, &corev1.Node{})
		if reason, err := w.port.IsDrifted(t.Context(), fresh()); reason != "" || !errors.Is(err, errUnreadable) {
			t.Errorf("a node that cannot be read: %q, %v", reason, err)
		}
	})
}

// Fingerprints are compared when both are there, of one kind, and the class's is that of its
// spec.
func TestHashesAreComparedWhereTheyCanBe(t *testing.T) {
	class := &v1beta1.AKSNodeClass{}
	now, err := class.Hash()
	if err != nil {
		t.Fatal(err)
	}
	hash := func(value, version string) map[string]string {
		return map[string]string{v1beta1.AnnotationHash: value, v1beta1.AnnotationHashVersion: version}
	}
	for name, c := range map[string]struct {
		claim, class map[string]string
		drifted      bool
	}{
		"equal":                   {hash(now, "v3"), hash(now, "v3"), false},
		"another":                 {hash("1", "v3"), hash(now, "v3"), true},
		"of another kind":         {hash("1", "v2"), hash(now, "v3"), false},
		"none on the claim":       {hash("", "v3"), hash(now, "v3"), false},
		"none on the class":       {hash("1", "v3"), hash("", "v3"), false},
		"that of the spec before": {hash("1", "v3"), hash("2", "v3"), false},
		"no annotations whatever": {nil, nil, false},
	} {
		class.Annotations = c.class
		if got := hashDrifted(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: c.claim}}, class); got != c.drifted {
			t.Errorf("%s: drifted %t, want %t", name, got, c.drifted)
		}
	}
}

// What Azure refused costs nothing: what was set aside for it is for others at once.
func TestRefusedPurchaseFreesWhatWasSetAside(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claims := limited(t, w, "0.30", "", 2, nil)
		fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Network/networkInterfaces/write",
			Status: 400, Code: "SubnetIsFull", Message: "full"})
		if err != nil {
			t.Fatal(err)
		}
		if bought, _ := buyAll(t, w, claims[:1]); len(bought) > 0 {
			t.Fatal("bought in a full subnet")
		}
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		if bought, failed := buyAll(t, w, claims[1:]); len(bought) != 1 {
			t.Errorf("the limit leaves $0.30/h, and a machine of $0.219/h is not bought: %v", failed)
		}
	})
}

// A claim carries what its machine was made with: by that it is compared with the class later.
// Of AKS machines it is AKS that knows the key.
func TestBoughtClaimSaysWhatItWasMadeWith(t *testing.T) {
	for _, aks := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.restart(t, func(c *config.Config) {
				if aks {
					w.aksMachines(c)
				}
			})
			created, err := w.port.Create(t.Context(), claim("general-abc12", need(karpv1.CapacityTypeLabelKey, "on-demand")))
			if err != nil {
				t.Fatal(err)
			}
			key := azure.SSHKeyHash(&w.config)
			if aks {
				key = ""
			}
			for name, want := range map[string]string{
				v1beta1.AnnotationHash: w.class.Annotations[v1beta1.AnnotationHash], v1beta1.AnnotationHashVersion: v1beta1.HashVersion,
				v1beta1.AnnotationInPlaceUpdateHash: w.port.InPlace.InPlaceHash(w.class), v1beta1.AnnotationSSHKeyHash: key,
			} {
				if got := created.Annotations[name]; got != want {
					t.Errorf("AKS machine %t: %s is %q, want %q", aks, name, got, want)
				}
			}
			if created.Annotations[v1beta1.AnnotationBilledSince] == "" || created.Labels[karpv1.NodePoolLabelKey] != "general" ||
				created.Status.Allocatable.Memory().Cmp(*created.Status.Capacity.Memory()) >= 0 {
				t.Errorf("AKS machine %t: %+v", aks, created)
			}
		})
	}
}

// That a class is missing is told, since only a person can bring it.
func TestMissingClassIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := claim("a")
		c.Spec.NodeClassRef.Name = "other"
		_, err := w.port.Create(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), `"other"`) ||
			!slices.ContainsFunc(w.events.all(), func(e string) bool { return strings.Contains(e, `AKSNodeClass "other" does not exist`) }) {
			t.Errorf("%v, events %q", err, w.events.all())
		}
	})
}

// Who plans hears of claims that end because what they allow is not to be had, and of no others.
func TestPlannerHearsOfWhatCannotBeHad(t *testing.T) {
	size, od := need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand")
	for code, told := range map[string]int{"SkuNotAvailable": 1, "SubnetIsFull": 0} {
		inWorld(t, func(t *testing.T, w *world) {
			if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Network/networkInterfaces/write",
				Status: 400, Code: code, Message: "No."}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.port.Create(t.Context(), claim("a", size, od)); err == nil {
				t.Fatal("bought")
			}
			var heard []string
			w.port.WatchUnsold(func(c *karpv1.NodeClaim) { heard = append(heard, c.Name) })
			if _, err := w.port.Create(t.Context(), claim("b", size, od)); err == nil || len(heard) != told {
				t.Errorf("%s: told of %v, want %d: %v", code, heard, told, err)
			}
		})
	}
}
