package race

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// tenantLabel is on the nodes of a tenant, and tenantLabel with the tenant's name is the taint
// that keeps others out.
const tenantLabel = "example.com/tenant"

func tenant(i int) string { return fmt.Sprintf("tenant-%03d", i) }

// ofTenants are Deployments of three pods, one for each tenant, of many sizes.
func ofTenants(tenants int) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for i := range tenants {
		d := deployment(tenant(i), 3, fmt.Sprintf("%dm", 200+i*37%1800), fmt.Sprintf("%dMi", 256+i*53%4000))
		d.Spec.Template.Spec.NodeSelector = map[string]string{tenantLabel: tenant(i)}
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{
			Key: tenantLabel, Operator: corev1.TolerationOpEqual, Value: tenant(i), Effect: corev1.TaintEffectNoSchedule,
		}}
		out = append(out, d)
	}
	return out
}

// tenantPool is the NodePool of a tenant, sharedPool one for all of them, both without the end
// (poolRest).
const (
	tenantPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: %[1]s
  labels: {example.com/tenant: %[1]s}
spec:
  template:
    metadata:
      labels: {example.com/tenant: %[1]s}
    spec:
      taints:
        - {key: example.com/tenant, value: %[1]s, effect: NoSchedule}
      requirements:
`
	sharedPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: tenants
  labels: {example.com/tenant: all}
spec:
  template:
    spec:
      requirements:
        - {key: example.com/tenant, operator: Exists}
`
	poolRest = `        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}
        - {key: karpenter.azure.com/sku-family, operator: In, values: [D, E, F]}
      expireAfter: Never
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 5s
    budgets:
      - nodes: 100%
---
`
)

// addTenants creates the NodePools of a course's tenants and waits until they are ready.
func (t *turn) addTenants(ctx context.Context) error {
	if t.course.Tenants == 0 {
		return nil
	}
	var manifest strings.Builder
	wanted := t.course.Tenants
	if t.course.Shared {
		manifest.WriteString(sharedPool + poolRest)
		wanted = 1
	} else {
		for i := range t.course.Tenants {
			fmt.Fprintf(&manifest, tenantPool, tenant(i))
			manifest.WriteString(poolRest)
		}
	}
	if err := lab.Apply(ctx, t.Config, []byte(manifest.String())); err != nil {
		return err
	}
	kube, err := client.New(t.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	for late := time.After(runWithin); ; {
		var pools v1.NodePoolList
		if err := kube.List(ctx, &pools, client.HasLabels{tenantLabel}); err != nil {
			return err
		}
		ready := 0
		for i := range pools.Items {
			if pools.Items[i].StatusConditions().Root().IsTrue() {
				ready++
			}
		}
		if ready == wanted {
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("%d of %d NodePools are ready after %s", ready, wanted, runWithin)
		case <-time.After(time.Second):
		}
	}
}

// removeTenants deletes the NodePools of tenants.
func (t *turn) removeTenants(ctx context.Context) error {
	if t.course.Tenants == 0 {
		return nil
	}
	kube, err := client.New(t.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	return kube.DeleteAllOf(ctx, &v1.NodePool{}, client.HasLabels{tenantLabel})
}
