package fleets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// demand is what users do: their deployments grow and shrink.
type demand struct {
	cluster *Cluster
	rng     *rand.Rand
	// apps are in order of their names.
	apps []*app
	// serial is the number of the last pod that was started.
	serial int
}

// app is a deployment: a pod to copy, and how many there were at first.
type app struct {
	template *corev1.Pod
	usual    int
	// daily apps follow the time of day.
	daily bool
	pods  []types.NamespacedName
}

// newDemand groups the pods of the beginning by app.
func newDemand(c *Cluster, seed uint64) *demand {
	d := &demand{cluster: c, rng: rand.New(rand.NewPCG(seed, 1))}
	byApp := map[string]*app{}
	var keys []types.NamespacedName
	for key := range d.cluster.pods {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return compare(a.String(), b.String()) })
	for _, key := range keys {
		name := appOf(d.cluster.pods[key])
		if byApp[name] == nil {
			byApp[name] = &app{template: d.cluster.pods[key].DeepCopy()}
		}
		byApp[name].pods = append(byApp[name].pods, key)
	}
	for i, name := range sorted(byApp) {
		a := byApp[name]
		a.usual, a.daily = len(a.pods), i%2 == 0
		d.apps = append(d.apps, a)
	}
	return d
}

// scale lets deployments grow and shrink: in three of a hundred minutes at random,
// and half of them with the day, which is four hours long.
func (d *demand) scale(minute int) {
	for _, a := range d.apps {
		want := len(a.pods)
		switch {
		case a.daily && minute%10 == 0:
			want = int(math.Round(float64(a.usual) * (1 + 0.6*math.Sin(2*math.Pi*float64(minute)/240))))
		case !a.daily && d.rng.Float64() < 0.03:
			want = int(math.Round(float64(a.usual) * 2 * d.rng.Float64()))
		}
		for len(a.pods) > max(0, want) {
			i := d.rng.IntN(len(a.pods))
			d.end(a.pods[i])
			a.pods = slices.Delete(a.pods, i, i+1)
		}
		for len(a.pods) < want {
			a.pods = append(a.pods, d.start(a))
		}
	}
}

func (d *demand) end(key types.NamespacedName) {
	p := d.cluster.pods[key]
	delete(d.cluster.pods, key)
	d.cluster.drop(p)
	d.cluster.touch(p.Spec.NodeName)
}

func (d *demand) start(a *app) types.NamespacedName {
	p := a.template.DeepCopy()
	d.serial++
	p.Name = fmt.Sprintf("%s-%05d", appOf(p), d.serial)
	p.UID, p.ResourceVersion, p.CreationTimestamp = types.UID(p.Namespace+"/"+p.Name), "", d.cluster.now
	key := client.ObjectKeyFromObject(p)
	d.cluster.pods[key] = p
	d.cluster.wait(key)
	return key
}
