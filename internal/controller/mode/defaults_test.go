package mode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// pools are the names of the NodePools.
func (w *world) pools() []string {
	w.t.Helper()
	var list karpv1.NodePoolList
	if err := w.Kube.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return out
}

// TestDefaultsAreMadeOnceAndNeverAgain: what a user changes stays, and what a user deletes
// stays deleted, over restarts and a deleted NodeAutoProvisioning.
func TestDefaultsAreMadeOnceAndNeverAgain(t *testing.T) {
	w := newWorld(t)
	got := w.looks()
	if want := []string{"default", "system-surge"}; !slices.Equal(w.pools(), want) {
		t.Fatalf("NodePools %q, want %q", w.pools(), want)
	}
	if want := "[AKSNodeClass/default AKSNodeClass/system-surge NodePool/default NodePool/system-surge]"; fmt.Sprint(got.Status.DefaultsMade) != want {
		t.Errorf("remembered %v, want %s", got.Status.DefaultsMade, want)
	}
	if c := condition(t, got, v1alpha1.ConditionDefaultNodePools); !strings.HasPrefix(c, "True Made") {
		t.Error(c)
	}
	changed := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	w.change(changed, func() { changed.Spec.Limits = karpv1.Limits(none()) })
	if err := w.Kube.Delete(t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "system-surge"}}); err != nil {
		t.Fatal(err)
	}
	again := func(k *Keeper) {
		t.Helper()
		w.Keeper = k
		w.looks()
		if !slices.Equal(w.pools(), []string{"default"}) {
			t.Errorf("NodePools %q", w.pools())
		}
		w.change(changed, func() {})
		if MayBuy(changed) {
			t.Errorf("limits are %v again", changed.Spec.Limits)
		}
	}
	again(w.Keeper)
	restarted := &Keeper{Kube: w.Kube, Recorder: w, Clock: w.Clock, Prerequisites: w.Prerequisites, Token: w.Token, Checks: w.Checks}
	again(restarted)
	if err := w.Kube.Delete(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	again(restarted)
}

// TestDefaultsAreNotForced: not where none are wanted, nor on a cluster that has NodePools of
// its own when nap meets it.
func TestDefaultsAreNotForced(t *testing.T) {
	w := newWorld(t)
	w.DefaultNodePools = v1alpha1.DefaultNodePoolsNone
	got := w.looks()
	if c := condition(t, got, v1alpha1.ConditionDefaultNodePools); len(w.pools()) > 0 || !strings.HasPrefix(c, "False NotWanted") {
		t.Errorf("NodePools %q, %s", w.pools(), c)
	}
	w.change(got, func() { got.Spec.DefaultNodePools = v1alpha1.DefaultNodePoolsAuto })
	if w.looks(); len(w.pools()) != 2 {
		t.Errorf("switched to Auto there are the NodePools %q", w.pools())
	}
	w = newWorld(t, pool("mine", nil))
	if got := w.looks().Spec.DefaultNodePools; got != v1alpha1.DefaultNodePoolsNone || len(w.pools()) != 1 {
		t.Errorf("beside a user's NodePool: %s, %q", got, w.pools())
	}
	w = newWorld(t, pool("mine", nil))
	w.DefaultNodePools = v1alpha1.DefaultNodePoolsAuto
	if w.looks(); len(w.pools()) != 3 {
		t.Errorf("asked for beside a user's NodePool: %q", w.pools())
	}
}

// TestDefaultsThatAreRefusedAreTold: with why, and tried again; what a user has under the
// name is kept.
func TestDefaultsThatAreRefusedAreTold(t *testing.T) {
	own := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"mine": "yes"}}}
	w := newWorld(t, own)
	refuse := true
	w.Kube = interceptor.NewClient(w.Kube.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*karpv1.NodePool); ok && refuse {
				return errors.New("forbidden")
			}
			return c.Create(ctx, o, opts...)
		},
	})
	if c := condition(t, w.looks(), v1alpha1.ConditionDefaultNodePools); c != "False Refused: NodePool/default could not be made, trying again: forbidden" {
		t.Error(c)
	}
	refuse = false
	if c := condition(t, w.looks(), v1alpha1.ConditionDefaultNodePools); !strings.HasPrefix(c, "True Made") {
		t.Error(c)
	}
	if w.change(own, func() {}); own.Labels["mine"] != "yes" || own.Spec.ImageFamily != nil {
		t.Errorf("the user's class was overwritten: %+v", own)
	}
}

// TestCiliumsTaintIsOnDefaultsOfItsDataplaneAlone: nodes of other dataplanes would keep it
// for ever.
func TestCiliumsTaintIsOnDefaultsOfItsDataplaneAlone(t *testing.T) {
	for dataplane, want := range map[string]int{"cilium": 2, "azure": 0, "": 0} {
		all, err := Defaults(dataplane)
		if err != nil {
			t.Fatal(err)
		}
		taints := 0
		for _, o := range all {
			if p, ok := o.(*karpv1.NodePool); ok {
				taints += len(p.Spec.Template.Spec.StartupTaints)
			}
		}
		if taints != want || len(all) != 4 {
			t.Errorf("dataplane %q: %d startup taints on %d objects, want %d", dataplane, taints, len(all), want)
		}
	}
}
