package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// workload returns the pending pods of many deployments, as an API server would
// deliver them.
func workload(deployments, replicas int) []*corev1.Pod {
	var pods []*corev1.Pod
	yes := true
	for d := range deployments {
		name := fmt.Sprintf("app-%03d", d)
		hash := fmt.Sprintf("%08x", d*7919)
		for r := range replicas {
			pods = append(pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprintf("%s-%s-%05d", name, hash, r), UID: types.UID(fmt.Sprint(name, r)), ResourceVersion: "1",
					CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
					Labels:            map[string]string{"app": name, "pod-template-hash": hash, "app.kubernetes.io/part-of": "shop"},
					OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash, Controller: &yes}},
				},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "c",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(100+d%97*50), resource.DecimalSI),
							corev1.ResourceMemory: *resource.NewQuantity(int64(256+d%61*128)<<20, resource.BinarySI),
						}},
					}},
					Tolerations: []corev1.Toleration{{
						Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					}},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
					}},
				},
				Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				}}},
			})
		}
	}
	return pods
}

type noCatalogs struct{}

func (noCatalogs) Catalog(context.Context, string) (*fleet.Catalog, error) { return nil, nil }

// Benchmark50000Pods measures the way from objects to a problem: 400
// deployments of 125 replicas, mirrored one by one and assembled.
func Benchmark50000Pods(b *testing.B) {
	pods := workload(400, 125)
	b.Run("mirror", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			store := fleet.NewStore()
			m := NewMirror(store, Settings{})
			for _, p := range pods {
				m.Apply(p)
			}
		}
	})
	b.Run("assemble", func(b *testing.B) {
		store := fleet.NewStore()
		m := NewMirror(store, Settings{})
		for _, p := range pods {
			m.Apply(p)
		}
		b.ReportAllocs()
		for b.Loop() {
			in, err := store.Snapshot().Problem(b.Context(), noCatalogs{}, fleet.Options{})
			if err != nil || len(in.Problem.Classes) != 400 {
				b.Fatalf("got %d classes, %v", len(in.Problem.Classes), err)
			}
		}
	})
}

// BenchmarkDecode measures how long files of 1.5 MB take to read: what kubectl prints as JSON, and
// the same as YAML, as a List and as documents.
func BenchmarkDecode(b *testing.B) {
	const size = 1_500_000
	var items []json.RawMessage
	var documents bytes.Buffer
	for _, pod := range workload(400, 5) {
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		text, err := json.Marshal(pod)
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, text)
		asYAML, err := yaml.JSONToYAML(text)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&documents, "---\n%s", asYAML)
		if documents.Len() > size {
			break
		}
	}
	list, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "    ")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"JSON": list, "YAML": documents.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if found, err := Decode(bytes.NewReader(text), "file"); err != nil || len(found) != len(items) {
					b.Fatalf("%d objects, %v", len(found), err)
				}
			}
		})
	}
}

// BenchmarkBusyCluster measures a snapshot's problem where 50,000 pods run on
// 5,000 nodes and 10,000 more wait: what a controller pays per planning round.
func BenchmarkBusyCluster(b *testing.B) {
	store := fleet.NewStore()
	m := NewMirror(store, Settings{})
	for i := range 5_000 {
		name := fmt.Sprintf("node-%04d", i)
		m.Apply(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprintf("eastus-%d", i%3+1),
				"node.kubernetes.io/instance-type": "D4",
			}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
			}},
		})
	}
	for i, p := range workload(400, 150) {
		if i%6 != 0 {
			p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = fmt.Sprintf("node-%04d", i%5_000), corev1.PodRunning, nil
		}
		m.Apply(p)
	}
	b.ReportAllocs()
	for b.Loop() {
		in, err := store.Snapshot().Problem(b.Context(), noCatalogs{}, fleet.Options{})
		if err != nil || in.Problem.PodCount() != 10_000 || len(in.Problem.Nodes) != 5_000 {
			b.Fatalf("got %d pods, %v", in.Problem.PodCount(), err)
		}
	}
}

// BenchmarkPendingClaims measures what 200 claims cost that are not launched
// and allow 600 sizes each, all different.
func BenchmarkPendingClaims(b *testing.B) {
	catalog := &fleet.Catalog{Axes: model.NewAxes()}
	var names []string
	for i := range 700 {
		t := model.InstanceType{Name: fmt.Sprintf("size-%03d", i), Labels: map[string]string{"arch": "amd64", "cpu": fmt.Sprint(i)},
			Capacity: model.Resources{int64(i+1) * 1000, 1 << 30, 0, 110}}
		for zone := range 4 {
			for _, capacityType := range []model.CapacityType{model.OnDemand, model.Spot} {
				t.Offerings = append(t.Offerings,
					model.Offering{Zone: fmt.Sprint(zone), CapacityType: capacityType, Price: model.Money(i), Available: true})
			}
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes, t)
		names = append(names, t.Name)
	}
	store := fleet.NewStore()
	store.Put(&fleet.Pool{Name: "pool", Ready: true, NodeLimit: -1})
	for i := range 200 {
		store.Expect(&fleet.Claim{Name: fmt.Sprint("claim-", i), Pool: "pool", Requirements: model.Requirements{
			{Key: model.LabelInstanceType, Operator: model.In, Values: names[i%100 : i%100+600]},
			{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand"}},
		}})
	}
	b.ReportAllocs()
	for b.Loop() {
		in, err := store.Snapshot().Problem(b.Context(), fixedCatalog{catalog}, fleet.Options{})
		if err != nil || len(in.Problem.Nodes) != 200 {
			b.Fatalf("got %d nodes, %v", len(in.Problem.Nodes), err)
		}
	}
}

// BenchmarkPodKey compares, per 2,000 pods, the key that is written by hand with one that
// model.AppendKey would write, and with the conversion that the key saves.
func BenchmarkPodKey(b *testing.B) {
	pods := workload(400, 5)
	measure := func(name string, f func(*corev1.Pod)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range pods {
					f(p)
				}
			}
		})
	}
	var w keyWriter
	measure("by hand", func(p *corev1.Pod) {
		w.buf = w.buf[:0]
		w.spec(p)
	})
	var buf []byte
	measure("by reflection", func(p *corev1.Pod) { buf = model.AppendKey(buf[:0], &p.Spec) })
	measure("conversion", func(p *corev1.Pod) { readSpec(p) })
}
