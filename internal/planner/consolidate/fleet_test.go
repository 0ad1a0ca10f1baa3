package consolidate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

const gi = 1 << 30

// now is the moment of all fleets in tests.
var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// eastUS reads the catalogue of the benchmarks: the D, E and F sizes of up to 64
// vCPUs that may be bought on demand, as the buying policy DEF64 has them.
func eastUS(t testing.TB) model.Catalog {
	data, err := os.ReadFile("../../../bench/workload/data/catalog-eastus.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		InstanceTypes []struct {
			Name               string
			Labels             map[string]string
			Capacity, Overhead map[string]string
			Offerings          []struct {
				Zone, CapacityType string
				Price              float64
				Available          bool
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var c model.Catalog
	for _, in := range file.InstanceTypes {
		cores, _ := strconv.Atoi(in.Labels["karpenter.azure.com/sku-cpu"])
		if !slices.Contains([]string{"D", "E", "F"}, in.Labels["karpenter.azure.com/sku-family"]) ||
			in.Labels["kubernetes.io/arch"] != "amd64" || cores > 64 {
			continue
		}
		it := model.InstanceType{Name: in.Name, Labels: in.Labels, Capacity: vector(in.Capacity), Overhead: vector(in.Overhead)}
		for _, o := range in.Offerings {
			if o.CapacityType == "on-demand" {
				it.Offerings = append(it.Offerings,
					model.Offering{Zone: o.Zone, CapacityType: model.OnDemand, Price: model.USD(o.Price), Available: o.Available})
			}
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	sort.Slice(c.InstanceTypes, func(i, j int) bool { return c.InstanceTypes[i].Name < c.InstanceTypes[j].Name })
	return c
}

func vector(r map[string]string) model.Resources {
	out := make(model.Resources, 4)
	for i, name := range model.NewAxes() {
		out[i] = quantity(i, r[name])
	}
	return out
}

// quantity reads the few notations that the catalogue uses.
func quantity(axis int, text string) int64 {
	scale := int64(1)
	for suffix, by := range map[string]int64{"m": 1, "Mi": 1 << 20, "Gi": 1 << 30, "Ki": 1 << 10, "G": 1e9} {
		if strings.HasSuffix(text, suffix) {
			text, scale = strings.TrimSuffix(text, suffix), by
			if suffix == "m" {
				axis = -1
			}
			break
		}
	}
	v, _ := strconv.ParseFloat(text, 64)
	if axis == model.CPU {
		scale = 1000
	}
	return int64(v * float64(scale))
}

// fragmented is a fleet of nodes of mixed sizes, each used to about 30 percent of
// its CPU or memory by pods of many deployments.
type fragmented struct {
	nodes, deployments int
	// budgets gives every deployment a PodDisruptionBudget of a tenth of its pods;
	// spreads lets a third of them spread over zones.
	budgets, spreads bool
	// small pods are a ninth of the usual size, so that there are more of them.
	small bool
}

func (fr fragmented) fleet(t testing.TB) *model.DisruptionProblem {
	rng := rand.New(rand.NewPCG(7, 11))
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{eastUS(t)}, Pools: []model.Pool{{Name: "default", NodeLimit: -1}}}
	f := &model.DisruptionProblem{
		Problem: p, Now: now, Policies: []model.DisruptionPolicy{{Pool: "default", Consolidation: model.WhenEmptyOrUnderutilized}},
	}
	for i := range fr.deployments {
		cpu := min(16000, 500*math.Exp(rng.NormFloat64()))
		perCore := min(16, 3*math.Exp(0.8*rng.NormFloat64()))
		if fr.small {
			cpu /= 9
		}
		c := model.MovableClass{EvictionCost: 1}
		c.Requests = model.Resources{int64(cpu/50)*50 + 50, int64(cpu*perCore/1000*16)*gi/16 + gi/16, 0, 1}
		c.Owner = fmt.Sprint("Deployment default/app", i)
		c.Namespace, c.Labels = "default", map[string]string{"app": fmt.Sprint("app", i)}
		if fr.spreads && i%3 == 0 {
			c.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Hard: true, HonorNodeAffinity: true,
				Selector: &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{c.Labels["app"]}}}}}}
		}
		if fr.budgets {
			c.Budgets = []int{i}
			f.Budgets = append(f.Budgets, model.PodBudget{Namespace: "default", Name: fmt.Sprint("app", i)})
		}
		f.Movable = append(f.Movable, c)
		p.Shapes = append(p.Shapes, c.PodShape)
	}
	perZone := make([]map[string]int, fr.deployments)
	for i := range perZone {
		perZone[i] = map[string]int{}
	}
	for n := range fr.nodes {
		fr.addNode(f, rng, n, perZone)
	}
	for i := range f.Budgets {
		f.Budgets[i].Allowed = max(1, len(f.Movable[i].Pods)/10)
	}
	return f
}

func (fr fragmented) addNode(f *model.DisruptionProblem, rng *rand.Rand, n int, perZone []map[string]int) {
	p := f.Problem
	types := p.Catalogs[0].InstanceTypes
	var it *model.InstanceType
	for {
		it = &types[rng.IntN(len(types))]
		if c := it.Capacity[model.CPU]; c >= 4000 && c <= 32000 && len(it.Offerings) > 0 {
			break
		}
	}
	o := it.Offerings[rng.IntN(len(it.Offerings))]
	node := model.Node{
		Name: fmt.Sprintf("node-%04d", n), Claim: fmt.Sprintf("claim-%04d", n), Pool: "default", State: model.NodeReady,
		Labels: map[string]string{
			model.LabelZone: o.Zone, model.LabelInstanceType: it.Name, model.LabelCapacityType: string(o.CapacityType),
		},
		Allocatable: it.Allocatable(), Used: make(model.Resources, 4), Price: o.Price,
	}
	node.Labels[model.LabelHostname] = node.Name
	ten := model.NodeUsage{Initialized: true, Ready: true, Created: now.Add(-24 * time.Hour),
		InitializedAt: now.Add(-24 * time.Hour), LastPodEvent: now.Add(-time.Hour)}
	for pods, misses := 0, 0; pods < 30 && misses < 8; {
		i := rng.IntN(fr.deployments)
		c := &f.Movable[i]
		used := node.Used.Add(c.Requests)
		if used[0]*10 > node.Allocatable[0]*4 || used[1]*10 > node.Allocatable[1]*4 {
			misses++
			continue
		}
		if len(c.Spread) > 0 && perZone[i][o.Zone] > min(perZone[i]["eastus-1"], perZone[i]["eastus-2"], perZone[i]["eastus-3"]) {
			misses++
			continue
		}
		perZone[i][o.Zone]++
		node.Used = used
		c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("app%d-%d", i, len(c.Pods))})
		ten.Pods = append(ten.Pods, model.ClassPods{Class: i, Pods: []int{len(c.Pods) - 1}})
		node.Bound = append(node.Bound, model.BoundPods{Shape: i, Count: 1})
		pods++
		if node.Used[0]*10 > node.Allocatable[0]*3 || node.Used[1]*10 > node.Allocatable[1]*3 {
			break
		}
	}
	p.Nodes = append(p.Nodes, node)
	f.Usages = append(f.Usages, ten)
}

func podCount(f *model.DisruptionProblem) int {
	n := 0
	for i := range f.Movable {
		n += len(f.Movable[i].Pods)
	}
	return n
}
