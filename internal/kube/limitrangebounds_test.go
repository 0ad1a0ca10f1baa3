package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitRangesRefusePods(t *testing.T) {
	pod := func(resources string) string {
		return "\n---\n" + `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {containers: [{name: c, resources: ` + resources + `}]}}`
	}
	for _, c := range []struct{ name, limits, text, said string }{
		{"a request above the most", "type: Container, max: {cpu: '1'}", pod("{requests: {cpu: '3'}}"),
			"Pod shop/p: is held back: LimitRange shop/r allows a request of at most cpu 1, and container c has 3"},
		{"a limit above the most", "type: Container, max: {cpu: '1'}", pod("{requests: {cpu: '1'}, limits: {cpu: '3'}}"),
			"Pod shop/p: is held back: LimitRange shop/r allows a limit of at most cpu 1, and container c has 3"},
		{"the most", "type: Container, max: {cpu: '1'}", pod("{requests: {cpu: '1'}}"), ""},
		{"a request below the least", "type: Container, min: {cpu: 500m}", pod("{requests: {cpu: 100m}}"),
			"Pod shop/p: is held back: LimitRange shop/r wants a request of at least cpu 500m, and container c has 100m"},
		{"a limit below the least", "type: Container, min: {cpu: 500m}", pod("{requests: {cpu: 500m}, limits: {cpu: 100m}}"),
			"Pod shop/p: is held back: LimitRange shop/r wants a limit of at least cpu 500m, and container c has 100m"},
		{"what it does not say is the least", "type: Container, min: {cpu: 500m}", pod("{}"), ""},
		{"an init container", "type: Container, max: {cpu: '1'}",
			strings.Replace(pod("{}"), "containers:", "initContainers: [{name: i, resources: {requests: {cpu: '2'}}}], containers:", 1),
			"Pod shop/p: is held back: LimitRange shop/r allows a request of at most cpu 1, and container i has 2"},
		{"a limit too far from the request", "type: Container, maxLimitRequestRatio: {cpu: '1.5'}", pod("{requests: {cpu: '1'}, limits: {cpu: '2'}}"),
			"Pod shop/p: is held back: LimitRange shop/r allows a limit of at most 1500m times the request of cpu, and container c has request 1 and limit 2"},
		{"a limit near the request", "type: Container, maxLimitRequestRatio: {cpu: '2'}", pod("{requests: {cpu: '1'}, limits: {cpu: '2'}}"), ""},
		{"a limit to no request", "type: Container, maxLimitRequestRatio: {cpu: '2'}", pod("{requests: {cpu: '1'}}"),
			"Pod shop/p: is held back: LimitRange shop/r allows a limit of 2 times the request of cpu, and both must be set: " +
				"container c has request 1 and limit 0"},
		{"all containers of a pod together", "type: Pod, max: {cpu: '1'}",
			strings.Replace(pod("{limits: {cpu: 600m}}"), "containers: [", "containers: [{name: d, resources: {limits: {cpu: 600m}}}, ", 1),
			"Pod shop/p: is held back: LimitRange shop/r allows a request of at most cpu 1, and the pod has 1200m"},
		{"a pod without a limit", "type: Pod, max: {cpu: '1'}", pod("{requests: {cpu: 600m}}"),
			"Pod shop/p: is held back: LimitRange shop/r wants a limit of at most cpu 1, and the pod has none"},
		{"a pod without a request", "type: Pod, min: {cpu: '1'}", pod("{}"),
			"Pod shop/p: is held back: LimitRange shop/r wants a request of at least cpu 1, and the pod has none"},
		{"volume claims are no pods", "type: PersistentVolumeClaim, max: {storage: 1Gi}", pod("{requests: {cpu: '3'}}"), ""},
		{"a pod that is there", "type: Container, max: {cpu: '1'}", strings.Replace(pod("{requests: {cpu: '3'}}"), "spec: {", "spec: {nodeName: node, ", 1), ""},
		{"all pods of a workload", "type: Container, max: {cpu: '1'}", "\n---\n" + `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, ` +
			`namespace: shop}, spec: {replicas: 3, selector: {matchLabels: {app: s}}, template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}}`,
			"StatefulSet shop/s: the 3 pods that it lacks are held back: LimitRange shop/r allows a request of at most cpu 1, and container c has 3"},
	} {
		manifests, err := Decode(strings.NewReader("{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: shop}, spec: {limits: [{"+
			c.limits+"}]}}"+c.text), "file")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		out := Expand(manifests)
		said := strings.Join(append(slices.Clone(out.Notes), errorTexts(out.Problems)...), "; ")
		if diff := cmp.Diff(c.said, said); diff != "" {
			t.Errorf("%s: said (-want +got):\n%s", c.name, diff)
		}
		pods := podsOf(out.Objects.List())
		if held := out.Quotas.Held(); (len(held) > 0) != (c.said != "") || (len(pods) == 0) != (c.said != "") {
			t.Errorf("%s: %d pods, held back %v", c.name, len(pods), held)
		}
	}
}
