package kube

import (
	"fmt"
	"strings"
	"testing"
)

// A pod that never runs keeps no other pod off a ResourceClaim that both name.
func TestPodThatNeverRunsSharesNoClaim(t *testing.T) {
	claim := "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: ours, namespace: default}\n" +
		"spec: {devices: {requests: " + one("count: 2") + "}}\n"
	follows := func(pod, first string) string {
		return fmt.Sprintf("\n%s: ResourceClaims: resource claim \"gpu\": ResourceClaim ours is shared with pod default/%s, "+
			"which is planned first; this pod follows it to its node", pod, first)
	}
	a := claimUser("a", "ours", "")
	for name, c := range map[string]struct{ first, want string }{
		"any":           {a, "T4x4 for 1" + follows("b", "a")},
		"gated":         {strings.Replace(a, "spec: {", "spec: {schedulingGates: [{name: wait}], ", 1), "T4x4 for 1"},
		"being deleted": {strings.Replace(a, "uid: a", "uid: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x/y]", 1), "T4x4 for 1"},
		"too large":     {strings.Replace(a, "500m", "'9000'", 1), "T4x4 for 1" + follows("a", "b")},
		"ended":         {a + "status: {phase: Succeeded}\n", "T4x4 for 1"},
		"invalid": {strings.Replace(a, "spec: {", "spec: {tolerations: [{operator: Same}], ", 1),
			"T4x4 for 1\na: PodInvalid: spec.tolerations[0].operator: got \"Same\", allowed: Exists, Equal, Gt, Lt"},
	} {
		t.Run(name, func(t *testing.T) {
			in, plan := planned(t, gpuClass+claim+c.first+claimUser("b", "ours", ""))
			if got := said(in, plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
