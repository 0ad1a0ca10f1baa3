package differential

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// The labels of generated sizes and nodes.
const (
	familyLabel = "example.com/family"
	cpuLabel    = "example.com/cpu"
	teamLabel   = "example.com/team"
)

// rng draws at random, the same for the same seed.
type rng struct{ *rand.Rand }

// newRNG returns the stream of a seed that has this number; draws from one stream
// leave the others as they are.
func newRNG(seed, stream uint64) rng { return rng{rand.New(rand.NewPCG(seed, stream))} }

// maybe is true with the given probability.
func (r rng) maybe(probability float64) bool { return r.Float64() < probability }

// zone draws the name of one of the three zones.
func (r rng) zone() string { return fmt.Sprintf("zone-%d", 1+r.IntN(3)) }

// pick draws one of the values, each with the same probability.
func pick[T any](r rng, from ...T) T { return from[r.IntN(len(from))] }

// objectList holds the Kubernetes objects of a cluster in the order in which they
// were drawn.
type objectList struct{ all []client.Object }

func (l *objectList) add(objects ...client.Object) { l.all = append(l.all, objects...) }

// drawer draws one cluster.
type drawer struct {
	rng
	rules podRules
	// scale is how many times more apps and nodes there are than in a small cluster.
	scale int
	// catalog holds the instance types, from drawCatalog on.
	catalog *kube.CatalogFile
	// pools are the NodePools, from drawPools on; input adds them to objects.
	pools []*v1.NodePool
	// objects are all other objects drawn so far.
	objects *objectList
}

// Generate draws the cluster of a seed: a catalogue of some sizes in three
// zones, one to three NodePools, nodes that exist, DaemonSets, and pods with
// rules of every kind.
func Generate(seed uint64) (*workload.Input, error) { return newDrawer(seed).draw(seed) }

// largeScale makes clusters of 20 to 140 apps, some hundred pods.
const largeScale = 20

// GenerateLarge draws a larger cluster of the same kind, where many more pods have a
// say in where the others go.
func GenerateLarge(seed uint64) (*workload.Input, error) {
	d := newDrawer(seed)
	d.scale = largeScale
	return d.draw(seed)
}

func (d *drawer) draw(seed uint64) (*workload.Input, error) {
	d.drawCatalog()
	d.drawPools()
	d.drawDaemons()
	d.drawApps()
	d.drawNodes()
	return d.input(seed)
}

func newDrawer(seed uint64) *drawer {
	r := newRNG(seed, 1)
	return &drawer{rng: r, rules: podRules{rng: r, late: newRNG(seed, 2)}, scale: 1, objects: &objectList{}}
}

// input is what has been drawn.
func (d *drawer) input(seed uint64) (*workload.Input, error) {
	for _, p := range d.pools {
		d.objects.add(p)
	}
	types, err := karpenterengine.InstanceTypes(d.catalog)
	if err != nil {
		return nil, err
	}
	var manifests []kube.Manifest
	for _, o := range d.objects.all {
		manifests = append(manifests, kube.Manifest{Source: fmt.Sprintf("seed %d", seed), Object: o})
	}
	in := &workload.Input{Objects: kube.Expand(manifests).Objects.List(), InstanceTypes: types}
	workload.Identify(in.Objects)
	return in, nil
}

func (d *drawer) drawCatalog() {
	d.catalog = &kube.CatalogFile{Region: "test"}
	maxPods := pick(d.rng, 8, 30, 110)
	for _, family := range []struct {
		name   string
		memory int
		price  float64
	}{{"general", 4, 0.048}, {"memory", 8, 0.063}, {"compute", 2, 0.0423}} {
		for _, cpu := range []int{2, 4, 8, 16, 32} {
			if d.maybe(0.3) {
				continue
			}
			d.catalog.InstanceTypes = append(d.catalog.InstanceTypes,
				d.size(family.name, cpu, family.memory*cpu, maxPods, family.price*float64(cpu)))
		}
	}
	if len(d.catalog.InstanceTypes) == 0 {
		d.catalog.InstanceTypes = append(d.catalog.InstanceTypes, d.size("general", 8, 32, maxPods, 0.4))
	}
}

func (d *drawer) size(family string, cpu, memory, maxPods int, price float64) kube.FileInstanceType {
	arch := "amd64"
	if d.maybe(0.15) {
		arch, price = "arm64", price*0.8
	}
	t := kube.FileInstanceType{
		Name: fmt.Sprintf("%s-%02d", family, cpu),
		Labels: map[string]string{
			corev1.LabelArchStable: arch, corev1.LabelOSStable: "linux",
			familyLabel: family, cpuLabel: fmt.Sprint(cpu),
		},
		Capacity: map[string]string{
			"cpu": fmt.Sprint(cpu), "memory": fmt.Sprintf("%dGi", memory), "pods": fmt.Sprint(maxPods), "ephemeral-storage": "100Gi",
		},
		Overhead: map[string]string{"cpu": "120m", "memory": fmt.Sprintf("%dMi", 500+50*memory)},
	}
	discount := 0.2 + 0.5*d.Float64()
	spot := d.maybe(0.6)
	for zone := 1; zone <= 3; zone++ {
		if d.maybe(0.15) {
			continue
		}
		available := !d.maybe(0.05)
		offering := kube.FileOffering{
			Zone: fmt.Sprintf("zone-%d", zone), CapacityType: v1.CapacityTypeOnDemand, Price: cents(price), Available: &available,
		}
		t.Offerings = append(t.Offerings, offering)
		if spot {
			offering.CapacityType, offering.Price = v1.CapacityTypeSpot, cents(price*discount*(0.9+0.2*d.Float64()))
			t.Offerings = append(t.Offerings, offering)
		}
	}
	return t
}

// cents rounds a price to hundredths of a cent, which both engines add exactly.
func cents(price float64) float64 { return float64(int(price*10_000)) / 10_000 }

func (d *drawer) drawPools() {
	for i := range 1 + d.IntN(3) {
		p := &v1.NodePool{
			TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", i)},
		}
		spec := &p.Spec.Template.Spec
		spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
		// "Equal weights compete by price": Karpenter takes the first by name, so
		// that its price is never below ours.
		if d.maybe(0.3) {
			weight := int32(1 + d.IntN(3))
			p.Spec.Weight = &weight
		}
		d.drawPoolRules(p, i)
		d.pools = append(d.pools, p)
	}
}

func (d *drawer) drawPoolRules(p *v1.NodePool, i int) {
	spec := &p.Spec.Template.Spec
	need := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values})
	}
	if d.maybe(0.7) {
		need(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn,
			pick(d.rng, []string{"on-demand"}, []string{"on-demand", "spot"}, []string{"spot"})...)
	}
	if d.maybe(0.4) {
		need(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")
	}
	if d.maybe(0.2) {
		need(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "zone-1", pick(d.rng, "zone-2", "zone-3"))
	}
	if d.maybe(0.2) {
		need(cpuLabel, corev1.NodeSelectorOpLt, pick(d.rng, "9", "17"))
	}
	if d.maybe(0.15) {
		need(familyLabel, corev1.NodeSelectorOpNotIn, pick(d.rng, "general", "memory", "compute"))
	}
	if d.maybe(0.3) {
		p.Spec.Template.Labels = map[string]string{teamLabel: pick(d.rng, "red", "blue")}
	}
	if i > 0 && d.maybe(0.3) {
		spec.Taints = []corev1.Taint{{Key: "dedicated", Value: pick(d.rng, "red", "blue"), Effect: corev1.TaintEffectNoSchedule}}
	}
	if d.maybe(0.15) {
		spec.StartupTaints = []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}
	}
	if d.maybe(0.1) {
		p.Spec.Limits = v1.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(64+d.IntN(200)), resource.DecimalSI)}
	}
}

func (d *drawer) drawDaemons() {
	for i := range d.IntN(3) {
		ds := &appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("daemon-%d", i), Namespace: "default"},
		}
		labels := map[string]string{"daemon": ds.Name}
		ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		ds.Spec.Template.Labels = labels
		ds.Spec.Template.Spec = podSpec(pick(d.rng, 50, 100, 250), pick(d.rng, 64, 256, 512))
		if d.maybe(0.5) {
			ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		if d.maybe(0.2) {
			ds.Spec.Template.Spec.NodeSelector = map[string]string{familyLabel: "memory"}
		}
		d.objects.add(ds)
	}
}

func podSpec(milliCPU, mebi int) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(milliCPU), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(mebi)<<20, resource.BinarySI),
		},
	}}}}
}
