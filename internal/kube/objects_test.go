package kube

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// namesOf are the names of objects, and the seconds at which they were created.
func namesOf(objects []client.Object) (names []string, seconds []int64) {
	for _, o := range objects {
		names, seconds = append(names, o.GetName()), append(seconds, o.GetCreationTimestamp().Unix())
	}
	return names, seconds
}

func podAt(name string, second int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
}

func TestObjectsMakePodsOfOneTemplateAgain(t *testing.T) {
	var objects, all Objects
	objects.Add(podAt("before", 1))
	objects.addReplicas(podAt("a-0", 2), podReplicas{names: []string{"a-1", "a-2"}, apart: time.Second})
	objects.addReplicas(podAt("b-0", 9), podReplicas{})
	all.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", CreationTimestamp: metav1.NewTime(time.Unix(0, 0))}})
	all.Append(objects)
	for range 2 { // the same each time
		names, seconds := namesOf(all.List())
		if !slices.Equal(names, []string{"node", "before", "a-0", "a-1", "a-2", "b-0"}) || !slices.Equal(seconds, []int64{0, 1, 2, 3, 4, 9}) {
			t.Errorf("got %v at %v", names, seconds)
		}
	}
	if distinct, _ := namesOf(all.Distinct()); all.Len() != 6 || !slices.Equal(distinct, []string{"node", "before", "a-0", "b-0"}) {
		t.Errorf("%d objects, of which %v are distinct", all.Len(), distinct)
	}
	counts := map[string]int{}
	for o, n := range all.Counted() {
		counts[o.GetName()] = n
	}
	if counts["a-0"] != 3 || counts["node"] != 1 || len(counts) != 4 {
		t.Errorf("counted %v", counts)
	}
	all.delete(func(o client.Object) bool { return o.GetName() == "before" })
	if names, _ := namesOf(all.List()); !slices.Equal(names, []string{"node", "a-0", "a-1", "a-2", "b-0"}) {
		t.Errorf("without the second: %v", names)
	}
	seen := 0
	for o := range all.All() {
		if seen++; o.GetName() == "a-1" {
			break
		}
	}
	if seen != 3 {
		t.Errorf("a round that ends early saw %d", seen)
	}
}

// Pods of a short file take memory once, unless each has something of its own.
func TestExpandKeepsPodsOfOneTemplateOnce(t *testing.T) {
	expanded := Expand(manifestsOf(t, deploymentOf("100", "{containers: [{name: c}]}")))
	if n := len(podsOf(expanded.Objects.Distinct())); n != 1 {
		t.Errorf("%d pods are kept of 100, want one", n)
	}
	pods := podsOf(expanded.Objects.List())
	if len(pods) != 100 || pods[0].Name != "web-00" || pods[99].Name != "web-99" || !pods[0].CreationTimestamp.Before(&pods[99].CreationTimestamp) {
		t.Errorf("got %d pods", len(pods))
	}
}

// Replicas that are read once are the same pods as when each is read.
func TestReplicasReadOnceAreTheSamePods(t *testing.T) {
	for name, text := range map[string]string{
		"plain":    deploymentOf("12", "{containers: [{name: c, resources: {requests: {cpu: 100m}}}], priority: 7}"),
		"gated":    deploymentOf("3", "{schedulingGates: [{name: g}], containers: [{name: c}]}"),
		"claim":    deploymentOf("3", "{volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], containers: [{name: c}]}"),
		"own disk": deploymentOf("3", "{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}], containers: [{name: c}]}"),
		"refused":  deploymentOf("3", "{containers: [{name: c}, {name: c}]}"),
		"bad name": strings.Replace(deploymentOf("3", "{containers: [{name: c}]}"), "name: web", "name: Web_", 1),
		"long name": strings.Replace(deploymentOf("12", "{containers: [{name: c}]}"), "name: web", "name: "+
			strings.Repeat("a", 251), 1),
	} {
		objects := Expand(manifestsOf(t, text)).Objects
		byOne, atOnce := fleet.NewStore(), fleet.NewStore()
		one := NewMirror(byOne, Settings{EveryPod: true})
		for o := range objects.All() {
			one.Apply(o)
		}
		NewMirror(atOnce, Settings{EveryPod: true}).ApplyAll(objects)
		want, got := podsByName(byOne), podsByName(atOnce)
		if len(want) < 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %d pods, want these %d: %v", name, len(got), len(want), want)
		}
	}
}

func podsByName(s *fleet.Store) map[model.PodRef]fleet.Pod {
	out := map[model.PodRef]fleet.Pod{}
	for pod := range s.Snapshot().Pods() {
		out[pod.Ref] = *pod
	}
	return out
}
