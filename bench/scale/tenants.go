package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// podsPerTenant is how many pods of each tenant wait, each of another size.
const podsPerTenant = 3

// PlanTenants plans for so many tenants, whose pods all wait. Each has a NodePool that buys
// every amd64 size, and pods that ask for it by a label.
func PlanTenants(ctx context.Context, tenants int, effort time.Duration) (*Planned, error) {
	types, err := workload.EastUS()
	if err != nil {
		return nil, err
	}
	all, err := workload.NodePool("all")
	if err != nil {
		return nil, err
	}
	var manifests []kube.Manifest
	for i := range tenants {
		pool := all.DeepCopy()
		pool.Name = fmt.Sprintf("tenant-%04d", i)
		pool.Spec.Template.Labels = map[string]string{"example.com/tenant": pool.Name}
		manifests = append(manifests, kube.Manifest{Source: pool.Name, Object: pool})
		for size := range podsPerTenant {
			manifests = append(manifests, kube.Manifest{Source: pool.Name, Object: podOf(pool, i, size)})
		}
	}
	expanded := kube.Expand(manifests)
	if err := errors.Join(expanded.Problems...); err != nil {
		return nil, err
	}
	in := &workload.Input{Objects: expanded.Objects.List(), InstanceTypes: types}
	workload.Identify(in.Objects)
	return measurePlan(ctx, bench.NewNap(in, model.Policy{}), in.Pods(), effort)
}

// podOf is a pod that waits for its tenant's NodePool.
func podOf(pool *v1.NodePool, tenant, size int) *corev1.Pod {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(200+(tenant*37+size*311)%1800), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(256+(tenant*53+size*517)%4000)<<20, resource.BinarySI),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pool.Name, Name: fmt.Sprint("app-", size), Labels: map[string]string{"app": fmt.Sprint("app-", size)},
		},
		Spec: corev1.PodSpec{
			NodeSelector: pool.Spec.Template.Labels,
			Containers:   []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
}
