package cli

import (
	"context"
	"strings"
	"testing"
)

func TestRegionIsThatOfNamedZones(t *testing.T) {
	node := func(name, zone string) string {
		return `{apiVersion: v1, kind: Node, metadata: {name: ` + name + `, labels: {topology.kubernetes.io/zone: ` + zone + `}}}` + "\n---\n"
	}
	pool := func(zones string) string {
		return `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {nodeClassRef: ` +
			`{group: karpenter.azure.com, kind: AKSNodeClass, name: default}, requirements: ` +
			`[{key: topology.kubernetes.io/zone, operator: In, values: [` + zones + `]}]}}}}` + "\n---\n"
	}
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeSelector: {topology.kubernetes.io/zone: uksouth-1}, containers: [{name: c}]}}`
	for name, c := range map[string]struct{ text, flag, want string }{
		"of a node":            {text: node("a", "westeurope-1"), want: "westeurope"},
		"of a NodePool":        {text: pool("westeurope-1, westeurope-2"), want: "westeurope"},
		"not of a pod":         {text: pod, want: ""},
		"of two regions":       {text: node("a", "westeurope-1") + pool("uksouth-1"), want: ""},
		"unknown, or no zone":  {text: node("a", "mars-1") + node("b", `"0"`) + pool("uksouth-1"), want: "uksouth"},
		"none":                 {text: node("a", `""`), want: ""},
		"the label goes first": {text: strings.Replace(node("a", "westeurope-1"), "labels: {", "labels: {topology.kubernetes.io/region: uksouth, ", 1), want: "uksouth"},
		"the flag goes first":  {text: node("a", "westeurope-1"), flag: "uksouth", want: "uksouth"},
	} {
		t.Run(name, func(t *testing.T) {
			flags := &inputFlags{files: []string{"-"}, catalogFlags: catalogFlags{region: c.flag}}
			read, err := flags.read(context.Background(), strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if read.region != c.want {
				t.Errorf("got %q, want %q", read.region, c.want)
			}
		})
	}
}

// Prices of another region than that of the nodes leave most nodes without a price.
func TestNodesInOtherRegionAreTold(t *testing.T) {
	node := func(name, labels string) string {
		return `{apiVersion: v1, kind: Node, metadata: {name: ` + name + `, labels: {` + labels + `}}}` + "\n---\n"
	}
	text := node("a", "topology.kubernetes.io/zone: westeurope-1") +
		node("b", `topology.kubernetes.io/zone: "0", topology.kubernetes.io/region: uksouth`) +
		node("c", "topology.kubernetes.io/region: westeurope") + node("d", "topology.kubernetes.io/zone: eastus-1") + node("e", "x: y")
	for region, want := range map[string]string{
		"eastus":  "the input has 1 node in uksouth and 2 nodes in westeurope, and prices are of eastus: leave --region out",
		"uksouth": "the input has 1 node in eastus and 2 nodes in westeurope, and prices are of uksouth: leave --region out",
		"":        "",
	} {
		flags := &inputFlags{files: []string{"-"}, catalogFlags: catalogFlags{region: region}}
		read, err := flags.read(context.Background(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(read.notes, "; "); !strings.Contains(said, want) || strings.Contains(said, "prices are of") != (want != "") {
			t.Errorf("--region %q: notes are %s, want %s", region, said, want)
		}
	}
}
