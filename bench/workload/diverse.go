package workload

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// diverseTypes is how many sizes the diverse pods can be put on.
const diverseTypes = 400

// diverse re-creates the mix of Karpenter's own scheduling benchmark: equal
// parts of pods without rules, with hard zonal spread, with hard hostname
// spread, with zonal affinity to their like and with hostname anti-affinity to
// their like; requests, labels and selectors are drawn one by one from short
// lists.
func diverse(pods int) Workload {
	return Workload{
		Name: fmt.Sprintf("diverse-%d/%d types", pods, diverseTypes), Pods: pods,
		Workers: 5,
		About:   "Karpenter's own mix: plain, zonal and hostname spread, zonal affinity, hostname anti-affinity",
		build: func(pods int) (*Input, error) {
			types, err := linearTypes(diverseTypes)
			if err != nil {
				return nil, err
			}
			pool, err := NodePool("DEF")
			if err != nil {
				return nil, err
			}
			pool.Spec.Template.Spec.Requirements = nil
			manifests := []kube.Manifest{{Source: "pool", Object: pool}}
			for _, o := range diversePods(pods) {
				manifests = append(manifests, kube.Manifest{Source: "diverse", Object: o})
			}
			in := &Input{Objects: kube.Expand(manifests).Objects.List(), InstanceTypes: types}
			Identify(in.Objects)
			return in, nil
		},
	}
}

// linearTypes are n sizes of which the i-th has i CPUs, 2i GiB and room for 10i
// pods, in three zones on demand and in two of them as spot, at one price.
func linearTypes(n int) ([]*cloudprovider.InstanceType, error) {
	f := &kube.CatalogFile{Region: "test"}
	for i := 1; i <= n; i++ {
		// Ten cents per CPU and per decimal gigabyte.
		price := 0.1*float64(i) + 0.1*float64(2*i)*1.073741824
		t := kube.FileInstanceType{
			Name:     fmt.Sprintf("type-%03d", i),
			Labels:   map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
			Capacity: map[string]string{"cpu": fmt.Sprint(i), "memory": fmt.Sprintf("%dGi", 2*i), "pods": fmt.Sprint(10 * i)},
			Overhead: map[string]string{"cpu": "100m", "memory": "10Mi"},
		}
		for _, zone := range []string{"zone-1", "zone-2", "zone-3"} {
			t.Offerings = append(t.Offerings, kube.FileOffering{Zone: zone, CapacityType: v1.CapacityTypeOnDemand, Price: price})
			if zone != "zone-3" {
				t.Offerings = append(t.Offerings, kube.FileOffering{Zone: zone, CapacityType: v1.CapacityTypeSpot, Price: price})
			}
		}
		f.InstanceTypes = append(f.InstanceTypes, t)
	}
	return karpenterengine.InstanceTypes(f)
}

func diversePods(n int) []client.Object {
	r := rand.New(rand.NewPCG(42, 0))
	letter := func(key string) map[string]string {
		return map[string]string{key: string(rune('a' + r.IntN(7)))}
	}
	cpus, mebis := []int64{100, 250, 500, 1000, 1500}, []int64{100, 256, 512, 1024, 2048, 4096}
	var out []client.Object
	add := func(count int, shape func(p *corev1.Pod)) {
		for range count {
			p := &corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", len(out)), Namespace: "default"},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
					Requests: sizes(cpus[r.IntN(len(cpus))], mebis[r.IntN(len(mebis))]),
				}}}},
			}
			shape(p)
			out = append(out, p)
		}
	}
	plain := func(p *corev1.Pod) { p.Labels = letter("my-label") }
	spread := func(key string) func(p *corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = letter("my-label")
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: letter("my-label")},
			}}
		}
	}
	fifth := n / 5
	add(fifth, plain)
	add(fifth, spread(corev1.LabelTopologyZone))
	add(fifth, spread(corev1.LabelHostname))
	add(fifth, func(p *corev1.Pod) {
		p.Labels = letter("my-affinity")
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelTopologyZone,
			}},
		}}
	})
	add(fifth, func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "nginx"}
		p.Spec.Affinity = apart(&metav1.LabelSelector{MatchLabels: p.Labels}, corev1.LabelHostname)
	})
	add(n-len(out), plain)
	return out
}
