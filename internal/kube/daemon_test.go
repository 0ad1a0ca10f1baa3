package kube

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// What a DaemonSet takes on nodes that will be bought is what its pods will ask for,
// not what its template says.
func TestDaemonSetRequestsOnNewNodes(t *testing.T) {
	cpu := func(quantity string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
	}
	daemonPod := func(name, node, quantity string, created int64) *corev1.Pod {
		controller := true
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(created, 0)),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: &controller}},
			},
			Spec: corev1.PodSpec{
				NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpu(quantity)}}},
			},
		}
	}
	tests := map[string]struct {
		template corev1.ResourceRequirements
		pods     []*corev1.Pod
		want     int64 // thousandths of a CPU
	}{
		"requests of the template": {corev1.ResourceRequirements{Requests: cpu("100m")}, nil, 100},
		"limits alone":             {corev1.ResourceRequirements{Limits: cpu("1500m")}, nil, 1500},
		"requests win over limits": {corev1.ResourceRequirements{Requests: cpu("100m"), Limits: cpu("1500m")}, nil, 100},
		"the newest pod, bound": {corev1.ResourceRequirements{Requests: cpu("100m")},
			[]*corev1.Pod{daemonPod("old", "n", "200m", 1), daemonPod("new", "n", "300m", 2)}, 300},
		"the newest pod, which waits": {corev1.ResourceRequirements{},
			[]*corev1.Pod{daemonPod("old", "n", "200m", 1), daemonPod("new", "", "1", 2)}, 1000},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
			daemon.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: tc.template}}
			store := fleet.NewStore()
			mirror := NewMirror(store, Settings{}) // as the controller sees a cluster, not as files are read
			mirror.Apply(daemon)
			for _, p := range tc.pods {
				mirror.Apply(p)
			}
			if got := daemonCPU(t, store, mirror); got != tc.want {
				t.Errorf("the DaemonSet takes %dm CPU on new nodes, want %dm", got, tc.want)
			}
			if got := daemon.Spec.Template.Spec.Containers[0].Resources.Requests; len(got) != len(tc.template.Requests) {
				t.Errorf("the object was changed: requests %v", got)
			}
		})
	}
}

// daemonCPU is what the only DaemonSet takes on new nodes, in thousandths of a CPU. It
// adds a NodePool to the store by its mirror.
func daemonCPU(t *testing.T, store *fleet.Store, mirror *Mirror) int64 {
	t.Helper()
	catalog := &fleet.Catalog{
		Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{Name: "D4", Capacity: model.Resources{4000, 1 << 34, 0, 110}}},
	}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeRegistrationHealthy)
	mirror.Apply(pool)
	in, err := store.Snapshot().Problem(t.Context(), everyPool{catalog}, fleet.Options{Now: time.Unix(10, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Problem.Pools) != 1 || len(in.Problem.Pools[0].Daemons) != 1 {
		t.Fatalf("pools %+v, left out %+v; want one pool with one DaemonSet", in.Problem.Pools, in.Problem.LeftOut)
	}
	return in.Problem.Pools[0].Daemons[0].Requests[0]
}

// everyPool sells the same to every NodePool.
type everyPool struct{ catalog *fleet.Catalog }

func (e everyPool) Catalog(context.Context, string) (*fleet.Catalog, error) { return e.catalog, nil }
