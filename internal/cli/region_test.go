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
