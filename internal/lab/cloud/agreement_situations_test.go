//go:build scale

package cloud_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// trouble is a NodePool of its own, pods that select it, and what is wrong.
type trouble struct {
	name string
	// size is the only VM size of the NodePool, Standard_D4s_v5 where it is empty. What Azure
	// has refused stays refused for minutes, so that a size is refused in one situation only.
	size string
	// class is the NodePool's AKSNodeClass, default where it is empty.
	class string
	// faults are kinds of nap lab fault with their parameters, as "quota family=x limit=0".
	faults []string
	// pool is added to the NodePool's spec.template.spec, limits and annotations are lines
	// of those fields.
	pool, limits, annotations string
	// pod is added to the pods' spec, cpu what each asks for; pods is how many there are, one
	// where it is zero.
	pod, cpu string
	pods     int
	// objects are applied first.
	objects string
	// mode is that of node auto-provisioning, Auto where it is empty.
	mode v1alpha1.Mode
	// spec is added to the NodePool's spec.
	spec string
	// reasons are what nap says of the pods that wait; none: they get a machine.
	reasons []model.Reason
	// underway is how Azure's words begin while the machines stay on their way; empty where
	// they come.
	underway string
}

// troubles are what keeps pods waiting, alone and together, and what does not.
func troubles() []trouble {
	return []trouble{
		{name: "bought", pods: 3},
		{name: "frozen", annotations: `karpenter.azure.com/frozen: "release"`},
		{name: "limit", limits: `cpu: "1"`, reasons: []model.Reason{model.ReasonLimit}},
		{name: "node-limit", limits: `nodes: "1"`, cpu: "3", pods: 2, reasons: []model.Reason{model.ReasonNodeLimit}},
		{name: "cost-limit", annotations: `karpenter.azure.com/max-hourly-cost: "0.05"`, reasons: []model.Reason{model.ReasonCostLimit}},
		{name: "too-large", cpu: "400", reasons: []model.Reason{model.ReasonResources}},
		{name: "other-arch", pod: `nodeSelector: {kubernetes.io/arch: arm64}`, reasons: []model.Reason{model.ReasonPodRequirement}},
		{name: "other-region", pod: `nodeSelector: {topology.kubernetes.io/zone: westeurope-1}`, reasons: []model.Reason{model.ReasonPodRequirement}},
		{name: "agent-pool", pod: `nodeSelector: {agentpool: user}`, reasons: []model.Reason{model.ReasonPodRequirement}},
		{name: "taint", pool: `taints: [{key: team, value: a, effect: NoSchedule}]`, reasons: []model.Reason{model.ReasonTaint}},
		{name: "daemons", cpu: "3500m", objects: greedyDaemons, reasons: []model.Reason{model.ReasonDaemonOverhead}},
		{name: "apart", pods: 5, pod: `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [` +
			`{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: apart}}}]}}`, reasons: []model.Reason{model.ReasonAntiAffinity}},
		{name: "throttled", size: "Standard_D4s_v4",
			faults: []string{"throttle operation=Microsoft.Compute/virtualMachines/write retryAfter=1s duration=5s"}},
		{name: "sold-out", size: "Standard_D4as_v5", faults: []string{"capacity size=Standard_D4as_v5"},
			reasons: []model.Reason{model.ReasonUnavailable}},
		{name: "zone-sold-out", size: "Standard_D4ads_v5", faults: []string{"capacity size=Standard_D4ads_v5 zone=1"},
			pod: `nodeSelector: {topology.kubernetes.io/zone: eastus-1}`, reasons: []model.Reason{model.ReasonUnavailable}},
		{name: "zone-elsewhere", size: "Standard_D4ds_v5", faults: []string{"capacity size=Standard_D4ds_v5 zone=1"}},
		{name: "spread", size: "Standard_E4s_v5", pods: 4, cpu: "3", faults: []string{"capacity size=Standard_E4s_v5 zone=3"},
			pod: `topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, ` +
				`whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spread}}}]`},
		{name: "family-quota", size: "Standard_E4as_v4", faults: []string{"quota family=standardEASv4Family limit=0"},
			reasons: []model.Reason{model.ReasonQuota}},
		{name: "no-class", class: "absent", reasons: []model.Reason{model.ReasonNoPool}},
		{name: "no-such-size", size: "Standard_D5s_v5", reasons: []model.Reason{model.ReasonPoolRequirement}},
		{name: "two-troubles", size: "Standard_E4ds_v5", limits: `cpu: "5"`, cpu: "3", pods: 2,
			faults: []string{"capacity size=Standard_E4ds_v5 zone=2"}, reasons: []model.Reason{model.ReasonLimit}},
		{name: "creation-ends-badly", size: "Standard_D4s_v3", faults: []string{"fail code=AllocationFailed size=Standard_D4s_v3"},
			reasons: []model.Reason{model.ReasonUnavailable}},
		{name: "azure-down", size: "Standard_D8s_v5", faults: []string{"outage"}, underway: v1beta1.ReasonAzureUnavailable},
		{name: "launches-fail", size: "Standard_D8s_v4", faults: []string{"error operation=Microsoft.Compute/virtualMachines/write code=SubnetIsFull status=400"},
			underway: "SubnetFull"},
		// What is left of a quota is read again after minutes: nothing is bought after this.
		{name: "regional-quota", size: "Standard_D4as_v4", faults: []string{"quota family=cores limit=0"},
			reasons: []model.Reason{model.ReasonQuota, model.ReasonUnavailable}},
		// No reason of the plan: nothing is bought for any pod.
		{name: "manual", mode: v1alpha1.ModeManual, reasons: []model.Reason{""}},
		{name: "static", spec: "replicas: 0", reasons: []model.Reason{model.ReasonNoPool}},
	}
}

// greedyDaemons take two CPUs of every machine of NodePool daemons.
const greedyDaemons = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: greedy, namespace: daemons}
spec:
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: daemons}
      containers:
        - name: pause
          image: mcr.microsoft.com/oss/kubernetes/pause:3.9
          resources: {requests: {cpu: "2"}}
---
`

// manifests are the objects of a situation: a namespace and a NodePool of its name, and a
// Deployment of its pods.
func (s trouble) manifests() string {
	var lines strings.Builder
	fmt.Fprintf(&lines, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n%s", s.name, s.objects)
	fmt.Fprintf(&lines, `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s, annotations: {%s}}
spec:
  limits: {%s}
  template:
    spec:
      expireAfter: Never
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: %s}
      %s
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1s}
  %s
---
`, s.name, s.annotations, s.limits, cmp.Or(s.size, "Standard_D4s_v5"), cmp.Or(s.class, "default"), s.pool, s.spec)
	selector := s.pod
	if !strings.Contains(selector, "nodeSelector: {") {
		selector += "\n      nodeSelector: {}"
	}
	selector = strings.Replace(selector, "nodeSelector: {", "nodeSelector: {karpenter.sh/nodepool: "+s.name+", ", 1)
	fmt.Fprintf(&lines, `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      %[3]s
      containers:
        - name: pause
          image: mcr.microsoft.com/oss/kubernetes/pause:3.9
          resources: {requests: {cpu: "%[4]s"}}
`, s.name, max(1, s.pods), selector, cmp.Or(s.cpu, "1"))
	return lines.String()
}
