package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shape is how deployments are drawn: CPU is lognormal with a median of 500m and
// sigma 1.0, memory is lognormal with a median of 3 GiB per core and sigma 0.8;
// three tenths of the pods are shared evenly, the rest by Zipf's law with
// exponent 0.8.
type Shape struct {
	Seed        uint64
	Deployments int
	// Constrained gives 60 percent of the deployments a hard zonal spread, 25
	// percent required hostname anti-affinity (those of at most 40 replicas) and
	// pins 15 percent to a zone (of those without spread).
	Constrained bool
}

// Deploy draws deployments with about that many pods in total.
func (s Shape) Deploy(pods int) []client.Object {
	r := rand.New(rand.NewPCG(s.Seed, 0))
	var out []client.Object
	for i, replicas := range zipf(s.Deployments, pods, 0.3, 0.8) {
		cpu := math.Exp(math.Log(500) + r.NormFloat64())
		perCore := math.Exp(math.Log(3) + 0.8*r.NormFloat64())
		d := deployment(i, replicas, cpu, cpu/1000*perCore*1024)
		if s.Constrained {
			constrain(r, d)
		}
		out = append(out, d)
	}
	return out
}

func constrain(r *rand.Rand, d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	own := &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
	spread := r.Float64() < 0.6
	if spread {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
		}}
	}
	if anti := r.Float64() < 0.25; anti && *d.Spec.Replicas <= 40 {
		spec.Affinity = apart(own, corev1.LabelHostname)
	}
	if pinned := r.Float64() < 0.375; pinned && !spread {
		spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("eastus-%d", 1+r.IntN(3))}
	}
}

func apart(selector *metav1.LabelSelector, key string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: key}},
	}}
}

// heavyTails draws 1,000 deployments as traces of large clusters show them: most
// have a few small pods, a few have most of the pods or most of the size.
func heavyTails(pods int) []client.Object {
	r := rand.New(rand.NewPCG(3, 0))
	pareto := func(least, alpha, most float64) float64 {
		return math.Min(most, least/math.Pow(1-r.Float64(), 1/alpha))
	}
	var out []client.Object
	for i, replicas := range zipf(1_000, pods, 0.1, 1.1) {
		cpu := pareto(50, 0.9, 30_000)
		out = append(out, deployment(i, replicas, cpu, math.Min(200_000, cpu/1000*pareto(0.5, 1.1, 32)*1024)))
	}
	return out
}

func identical(pods int) []client.Object {
	return []client.Object{deployment(0, pods, 750, 2_300)}
}

// gpuAndCPU draws 150 deployments of which every fifth asks for one to four
// GPUs, next to the same requests as the others' times four.
func gpuAndCPU(pods int) []client.Object {
	r := rand.New(rand.NewPCG(4, 0))
	out := Shape{Seed: 4, Deployments: 150}.Deploy(pods)
	for i, o := range out {
		if i%5 != 2 {
			continue
		}
		d := o.(*appsv1.Deployment)
		*d.Spec.Replicas = max(1, *d.Spec.Replicas/10)
		res := &d.Spec.Template.Spec.Containers[0].Resources
		for _, list := range []corev1.ResourceList{res.Requests, res.Limits} {
			list["nvidia.com/gpu"] = *resource.NewQuantity(int64(1<<r.IntN(3)), resource.DecimalSI)
		}
	}
	return out
}

// zipf shares pods over n deployments: a part of them evenly, the rest by rank
// with the exponent.
func zipf(n, pods int, even, exponent float64) []int {
	var sum float64
	for i := range n {
		sum += math.Pow(float64(i+1), -exponent)
	}
	out := make([]int, n)
	left := pods
	for i := n - 1; i >= 0; i-- {
		share := float64(pods) * (even/float64(n) + (1-even)*math.Pow(float64(i+1), -exponent)/sum)
		out[i] = max(1, int(math.Round(share)))
		if i == 0 {
			out[i] = max(1, left)
		}
		left -= out[i]
	}
	return out
}

// deployment rounds requests as people write them: CPU to 50m, memory to 64Mi.
func deployment(i, replicas int, milliCPU, mebi float64) *appsv1.Deployment {
	name := fmt.Sprintf("dep-%04d", i)
	labels := map[string]string{"app": name}
	count := int32(replicas)
	requests := sizes(max(1, int64(math.Round(milliCPU/50)))*50, max(1, int64(math.Round(mebi/64)))*64)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
					Requests: requests, Limits: requests.DeepCopy(),
				}}},
			}},
		},
	}
}

func sizes(milliCPU, mebi int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mebi<<20, resource.BinarySI),
	}
}

// Identify gives every object the unique identity that an API server would.
func Identify(objects []client.Object) {
	for i, o := range objects {
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)))
		}
	}
}
