// Package worst looks for the pod that costs the planner most. A user who may create a
// pod may choose what it states, so a pod must not cost more than it is worth: 100 ms and
// 50 MB from the decoded object to the plan, whatever it states.
package worst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// Mix is how much a pod states of each feature, by the name of the feature.
type Mix map[string]int

// Pod is a pod with a mix.
func (m Mix) Pod() *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "worst", Labels: map[string]string{"app": "worst"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.9",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}}}}},
	}
	for _, f := range Features() {
		if n := m[f.Name]; n > 0 {
			f.state(pod, n)
		}
	}
	return pod
}

// Bytes is the size of the mix's pod as JSON.
func (m Mix) Bytes() int {
	text, err := json.Marshal(m.Pod())
	if err != nil {
		return 0 // a pod always has a form as JSON
	}
	return len(text)
}

// Cost is what planning a pod took.
type Cost struct {
	Time time.Duration
	// Allocated is all that was allocated, in bytes: more than was ever in use.
	Allocated uint64
	// Reason is why the pod has no place, empty if it has one.
	Reason model.Reason
}

// Bench plans pods beside a NodePool.
type Bench struct {
	input *workload.Input
}

// NewBench returns a bench with the sizes of eastus and a NodePool of three families.
func NewBench() (*Bench, error) {
	types, err := workload.EastUS()
	if err != nil {
		return nil, err
	}
	pool, err := workload.NodePool("DEF")
	if err != nil {
		return nil, err
	}
	expanded := kube.Expand([]kube.Manifest{{Source: "NodePool", Object: pool}})
	return &Bench{&workload.Input{Objects: expanded.Objects.List(), InstanceTypes: types}}, errors.Join(expanded.Problems...)
}

// Plan plans copies of a pod, each with a name and a label of its own, from the decoded
// objects on, as the controller does.
func (b *Bench) Plan(ctx context.Context, pod *corev1.Pod, copies int) (Cost, error) {
	in := *b.input
	in.Objects = slices.Clone(b.input.Objects)
	for i := range copies {
		p := pod.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", pod.Name, i)
		p.Labels = maps.Clone(pod.Labels)
		p.Labels["copy"] = fmt.Sprint(i)
		in.Objects = append(in.Objects, p)
	}
	workload.Identify(in.Objects)
	nap := bench.NewNap(&in, model.Policy{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	problem, err := nap.State(ctx)
	if err != nil {
		return Cost{}, err
	}
	plan := planner.Solve(problem.Problem)
	cost := Cost{Time: time.Since(start)}
	runtime.ReadMemStats(&after)
	cost.Allocated = after.TotalAlloc - before.TotalAlloc
	switch {
	case len(problem.Rejected) > 0:
		cost.Reason = problem.Rejected[0].Reason
	case len(plan.Unschedulable) > 0:
		cost.Reason = plan.Unschedulable[0].Reason
	}
	return cost, nil
}

// Search looks for the dearest pod that is planned, by changing what the dearest one so
// far states, within the limits on pods, until ctx ends or after so many tries. It
// reports each dearer one.
func (b *Bench) Search(ctx context.Context, rng *rand.Rand, tries int, found func(Mix, Cost)) error {
	var best Mix
	var worst Cost
	for n := 0; n < tries && ctx.Err() == nil; n++ {
		mix := maps.Clone(best)
		if mix == nil {
			mix = Mix{}
		}
		features := Features()
		for range 1 + rng.IntN(3) {
			f := features[rng.IntN(len(features))]
			mix[f.Name] = rng.IntN(2 * f.Planned)
		}
		cost, err := b.Plan(ctx, mix.Pod(), 1)
		if err != nil {
			return err
		}
		if cost.Reason != model.ReasonAsksTooMuch && cost.Time > worst.Time {
			best, worst = mix, cost
			found(mix, cost)
		}
	}
	return nil
}
