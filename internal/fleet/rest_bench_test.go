package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// sharedCatalog is the same for all NodePools.
type sharedCatalog struct{ catalog *Catalog }

func (c sharedCatalog) Catalog(context.Context, string) (*Catalog, error) { return c.catalog, nil }

// atRest is a fleet of 1,000 nodes with 10,000 pods in 60 NodePools, where one pod waits.
func atRest() (*Store, Catalogs) {
	const nodes, perNode, pools, types = 1000, 10, 60, 300
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	catalog := &Catalog{Axes: model.NewAxes()}
	for i := range types {
		t := model.InstanceType{Name: fmt.Sprintf("Standard_D%ds_v5", i), Capacity: make(model.Resources, len(catalog.Axes))}
		t.Overhead = make(model.Resources, len(catalog.Axes))
		for j := range t.Capacity {
			t.Capacity[j] = int64(1+i) << 34
		}
		for _, zone := range []string{"eastus-1", "eastus-2", "eastus-3"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: model.OnDemand, Price: model.USD(float64(i+1) / 10), Available: true})
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes, t)
	}
	store, room := NewStore(), Amounts{CPU: 16000, Memory: 64 << 30, Storage: 100 << 30, Pods: 250}
	for i := range pools {
		store.Put(&Pool{Name: fmt.Sprintf("pool-%02d", i), Ready: true, NodeLimit: -1})
	}
	for i := range nodes {
		pool, name := fmt.Sprintf("pool-%02d", i%pools), fmt.Sprintf("aks-pool-%02d-%05d", i%pools, i)
		id := "azure:///subscriptions/0b1f6471-0000-4000-8000-000000000002/resourceGroups/MC_nap_nap_eastus/providers/" +
			"Microsoft.Compute/virtualMachines/" + name
		labels := map[string]string{
			model.LabelHostname: name, model.LabelNodePool: pool, model.LabelInstanceType: fmt.Sprintf("Standard_D%ds_v5", i%types),
			model.LabelZone: "eastus-1", model.LabelCapacityType: string(model.OnDemand),
		}
		store.Put(&Claim{Name: name[4:], Pool: pool, ProviderID: id, NodeName: name, Labels: labels, Capacity: room, Allocatable: room, Initialized: now})
		store.Put(&Node{
			Name: name, ProviderID: id, Claim: name[4:], Labels: labels, Capacity: room, Allocatable: room,
			Registered: true, Initialized: true, Ready: true,
		})
	}
	spec := &PodSpec{Requests: Amounts{CPU: 500, Memory: 1 << 30, Pods: 1}}
	spec.SetKey()
	labels := &Labels{Key: "app=web", Values: map[string]string{"app": "web"}}
	for i := range nodes * perNode {
		node := fmt.Sprintf("aks-pool-%02d-%05d", i%nodes%pools, i%nodes)
		store.Put(&Pod{
			Ref: model.PodRef{Namespace: "default", Name: fmt.Sprintf("web-%08x", i*2654435761)}, Spec: spec, Labels: labels, Node: node,
			Owner: Owner{Kind: "Deployment", Name: "web"}, Created: now,
		})
	}
	large := &PodSpec{Requests: Amounts{CPU: 15000, Memory: 1 << 30, Pods: 1}}
	large.SetKey()
	store.Put(&Pod{Ref: model.PodRef{Namespace: "default", Name: "large"}, Spec: large, Labels: labels, Wanted: true, Created: now})
	return store, sharedCatalog{catalog}
}

// BenchmarkOnePodAtRest states the problem of one pod that waits beside a large fleet.
func BenchmarkOnePodAtRest(b *testing.B) {
	store, catalogs := atRest()
	change := &Pod{Ref: model.PodRef{Namespace: "default", Name: "other"}, Spec: &PodSpec{}, Labels: &Labels{}}
	b.ReportAllocs()
	for b.Loop() {
		store.Put(change)
		in, err := store.Snapshot().Problem(b.Context(), catalogs, Options{})
		if err != nil || len(in.Problem.Nodes) != 1000 || len(in.Problem.Classes) != 1 {
			b.Fatal(err, len(in.Problem.Nodes), len(in.Problem.Classes))
		}
	}
}

// BenchmarkDecisionAtRest states which of the nodes of a large fleet could be removed.
func BenchmarkDecisionAtRest(b *testing.B) {
	store, catalogs := atRest()
	b.ReportAllocs()
	for b.Loop() {
		in, err := store.Snapshot().Disruption(b.Context(), catalogs, DisruptionOptions{})
		if err != nil || len(in.Disruption.Usages) != 1000 {
			b.Fatal(err, len(in.Disruption.Usages))
		}
	}
}

// BenchmarkViewsAtRest lists the nodes of a large fleet.
func BenchmarkViewsAtRest(b *testing.B) {
	store, catalogs := atRest()
	b.ReportAllocs()
	for b.Loop() {
		if views, err := store.Snapshot().Views(b.Context(), catalogs); err != nil || len(views) != 1000 {
			b.Fatal(err, len(views))
		}
	}
}
