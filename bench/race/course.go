package race

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Course is a piece of work for a controller.
type Course struct {
	Name, About string
	// Before runs already when the course begins; it is empty where the cluster is.
	Before []*appsv1.Deployment
	// Added are created when the course begins, all at once.
	Added []*appsv1.Deployment
	// Trickle are pods that come one a second, by the scale of the first Deployment of
	// Added; 0 where all come at once.
	Trickle int32
	// Scaled is to how many pods each Deployment of Before is scaled when the course
	// begins; 0 leaves them.
	Scaled int32
	// Rolled gives the Deployments of Before another template when the course begins, which
	// takes the place of the one before by rolling update.
	Rolled bool
	// Waves is in how many steps the Deployments of Added grow to their size, waveAfter one
	// another; 0 or 1 for all at once.
	Waves int32
	// Bare creates the pods of Added without a Deployment or any other owner.
	Bare bool
	// Daemon adds a DaemonSet to every node.
	Daemon bool
	// Tenants is for how many tenants there are NodePools, which keep others' pods out. With
	// Shared there is one for all, whose machines take a tenant's label by its pods.
	Tenants int
	Shared  bool
}

// Frees reports whether the course frees room, so that it is measured for freeFor.
func (c *Course) Frees() bool { return c.Scaled > 0 || c.Rolled }

// Courses are all courses, in the order of the table.
func Courses() []Course {
	return []Course{
		{Name: "thousand", About: "ten Deployments of 100 pods of different sizes", Added: mixed()},
		{Name: "thousand-same", About: "one Deployment of 1,000 pods", Added: []*appsv1.Deployment{deployment("same", 1000, "500m", "1Gi")}},
		{Name: "burst", About: "ten Deployments of 100 pods which spread over zones and nodes, and a DaemonSet", Added: spread(), Daemon: true},
		{Name: "trickle", About: "one pod a second for two minutes, on 200 nodes", Before: crowd(200),
			Added: []*appsv1.Deployment{deployment("trickle", 0, "1", "2Gi")}, Trickle: 120},
		{Name: "shrink", About: "1,000 pods of ten sizes become 700", Before: mixed(), Scaled: 70},
		{Name: "tenth", About: "1,000 pods of ten sizes become 100", Before: mixed(), Scaled: 10},
		{Name: "rollout", About: "1,000 pods of ten sizes are replaced by rolling update", Before: mixed(), Rolled: true},
		{Name: "waves", About: "ten Deployments grow to 100 pods, by ten pods every ten seconds", Added: mixed(), Waves: 10},
		{Name: "bare", About: "1,000 pods of ten sizes that have no owner", Added: mixed(), Bare: true},
		{Name: "tenants", About: "a Deployment of three pods for each of 100 tenants, who have a NodePool each",
			Added: ofTenants(100), Tenants: 100},
		{Name: "shared", About: "a Deployment of three pods for each of 100 tenants, who have one NodePool with an open label",
			Added: ofTenants(100), Tenants: 100, Shared: true},
	}
}

// deployment has pods which ask for so much, and end within a second of their deletion.
func deployment(name string, replicas int32, cpu, memory string) *appsv1.Deployment {
	labels := map[string]string{"app": name, "race": "pods"}
	grace := int64(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{container(cpu, memory)}},
			},
		},
	}
}

func container(cpu, memory string) corev1.Container {
	return corev1.Container{
		Name: "work", Image: "mcr.microsoft.com/oss/kubernetes/pause:3.9",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}},
	}
}

// mixed are the Deployments of the lab's story "thousand".
func mixed() []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for i, size := range [][2]string{
		{"100m", "128Mi"}, {"250m", "512Mi"}, {"250m", "1Gi"}, {"500m", "1Gi"}, {"500m", "2Gi"},
		{"1", "1Gi"}, {"1", "4Gi"}, {"1500m", "3Gi"}, {"2", "8Gi"}, {"3500m", "6Gi"},
	} {
		out = append(out, deployment(fmt.Sprintf("mixed-%d", i), 100, size[0], size[1]))
	}
	return out
}

// spread are mixed Deployments, every second one spread over zones and every fifth over
// nodes.
func spread() []*appsv1.Deployment {
	out := mixed()
	for i, d := range out {
		key, skew := corev1.LabelTopologyZone, int32(1)
		switch {
		case i%5 == 4:
			key, skew = corev1.LabelHostname, 20
		case i%2 == 1:
			continue
		}
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector,
		}}
	}
	return out
}

// crowd is a Deployment of which each pod has a node of its own.
func crowd(nodes int32) []*appsv1.Deployment {
	d := deployment("crowd", nodes, "1", "2Gi")
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: d.Spec.Selector,
		}},
	}}
	return []*appsv1.Deployment{d}
}

// daemon is a small DaemonSet.
func daemon() *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container("100m", "128Mi")}},
			},
		},
	}
}

// policy is the AKSNodeClass and the NodePool of every course: the story "thousand"'s.
const policy = `apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata:
  name: default
spec:
  osDiskSizeGB: 128
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      expireAfter: Never
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}
        - {key: karpenter.azure.com/sku-family, operator: In, values: [D, E, F]}
        - {key: karpenter.azure.com/sku-cpu, operator: In, values: ["16", "32", "64"]}
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 5s
    budgets:
      - nodes: 100%
`
