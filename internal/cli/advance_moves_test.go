package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fullNode is a node with so many pods of 3 CPUs, of which no node of 4 CPUs holds two.
type fullNode struct {
	name, size string
	pods       int
}

// fullNodes are a NodePool with nodes, as a file.
func fullNodes(nodes []fullNode) string {
	var b strings.Builder
	b.WriteString(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
      requirements:
      - {key: karpenter.azure.com/sku-family, operator: In, values: [D]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m, budgets: [{nodes: 100%}]}
`)
	for _, n := range nodes {
		cpus, _ := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(n.size))
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {karpenter.sh/nodepool: general, karpenter.sh/registered: "true", karpenter.sh/initialized: "true",
  node.kubernetes.io/instance-type: %s, topology.kubernetes.io/zone: eastus-1, karpenter.sh/capacity-type: on-demand,
  kubernetes.io/arch: amd64, kubernetes.io/os: linux}}
status: {allocatable: {cpu: %dm, memory: %dGi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
`, n.name, n.size, 970*cpus, 3*cpus/2)
		for i := range n.pods {
			fmt.Fprintf(&b, `---
apiVersion: v1
kind: Pod
metadata: {name: web-%s-%d, namespace: shop, labels: {app: web},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]}
spec: {nodeName: %s, containers: [{name: app, image: app, resources: {requests: {cpu: 3, memory: 2Gi}}}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`, n.name, i, n.name)
		}
	}
	return b.String()
}

// moveReport is what the test reads of a plan's moves.
type moveReport struct {
	Summary struct {
		HourlyBefore float64 `json:"hourlyBefore"`
		HourlyAfter  float64 `json:"hourlyAfter"`
	} `json:"summary"`
	Moves []struct {
		Remove []struct {
			Node string `json:"node"`
		} `json:"remove"`
		Add []struct {
			InstanceType string            `json:"instanceType"`
			Requests     map[string]string `json:"requests"`
		} `json:"add"`
	} `json:"moves"`
}

// apply is what the moves make of the nodes.
func (r *moveReport) apply(t *testing.T, nodes []fullNode, round int) []fullNode {
	t.Helper()
	for _, m := range r.Moves {
		for _, gone := range m.Remove {
			nodes = slices.DeleteFunc(nodes, func(n fullNode) bool { return n.name == gone.Node })
		}
		for _, made := range m.Add {
			cpus, err := strconv.Atoi(made.Requests["cpu"])
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, fullNode{fmt.Sprintf("new-%d-%d", round, len(nodes)), made.InstanceType, cpus / 3})
		}
	}
	return nodes
}

// Machines that use up what is paid in advance cost what that costs: those that are reserved are
// not moved off, and what moves make of the others costs afterwards what they said and stays.
func TestMovesLeaveMachinesThatArePaidInAdvance(t *testing.T) {
	const reserved, full = 0.027, 0.219
	for _, c := range []struct {
		nodes  int
		prices string
		before float64
	}{
		{3, "reservations: [{size: Standard_D4s_v5, count: 3, hourly: 0}]", 3 * reserved},
		{3, "reservations: [{size: Standard_D4s_v5, count: 4, hourly: 0}]", 3 * reserved},
		{5, "reservations: [{size: Standard_D4s_v5, count: 3, hourly: 0}]", 3*reserved + 2*full},
		{5, "reservations: [{size: Standard_D4s_v5, count: 1, hourly: 0}]", reserved + 4*full},
		{3, "savingsPlans: [{name: team, hourly: 0.15, prices: {Standard_D4s_v5: 0.05}}]", 3 * 0.077},
		{5, "savingsPlans: [{name: team, hourly: 0.15, prices: {Standard_D4s_v5: 0.05}}]", 3*0.077 + 2*full},
	} {
		t.Run(fmt.Sprintf("%d nodes, %s", c.nodes, c.prices), func(t *testing.T) {
			prices := filepath.Join(t.TempDir(), "prices.yaml")
			if err := os.WriteFile(prices, []byte(c.prices), 0o600); err != nil {
				t.Fatal(err)
			}
			var nodes []fullNode
			for i := range c.nodes {
				nodes = append(nodes, fullNode{fmt.Sprint("general-", i), "Standard_D4s_v5", 1})
			}
			costs := c.before
			for round := range 4 {
				out, errs, _ := nap.Run(t, "plan", "-f", writeInput(t, fullNodes(nodes)), "--prices-file", prices, "--consolidate", "-o", "json")
				var plan moveReport
				if err := json.Unmarshal([]byte(out), &plan); err != nil {
					t.Fatal(err, errs)
				}
				if math.Abs(plan.Summary.HourlyBefore-costs) > 1e-6 {
					t.Errorf("round %d: the nodes cost $%v, want $%v", round, plan.Summary.HourlyBefore, costs)
				}
				if len(plan.Moves) == 0 {
					return
				}
				costs = plan.Summary.HourlyAfter
				if costs >= plan.Summary.HourlyBefore || round == 0 && c.before == float64(c.nodes)*reserved {
					t.Errorf("round %d: moves of $%v that lead to $%v", round, plan.Summary.HourlyBefore, costs)
				}
				nodes = plan.apply(t, nodes, round)
			}
			t.Errorf("moves without end, at last to %v", nodes)
		})
	}
}

// A price for a size that is misspelled has no effect, which the first lines say.
func TestMisspelledSizesOfPricesAreNoted(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	text := "reservations: [{size: Standard_Nosuch, count: 3, hourly: 0}, {size: standard_d4s_V5, count: 1, hourly: 0}]\n"
	if err := os.WriteFile(prices, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, _ := nap.Run(t, "plan", "-f", writeInput(t, fullNodes(nil)), "--prices-file", prices)
	said := strings.Join(strings.Fields(errs), " ")
	if !strings.Contains(said, `no such size: reservations[0].size "Standard_Nosuch";`) {
		t.Errorf("want a note about Standard_Nosuch alone in\n%s", errs)
	}
}
