package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A plan for all pods that wait takes long where there are many, and says something of limits only.
func TestOnlyLimitsArePlannedForAllWaitingPods(t *testing.T) {
	pods := []model.PodRef{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}}
	problem := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1}}}
	for _, info := range model.Reasons() {
		if unlimited(info.Reason) != nil {
			continue
		}
		made := &madePlan{input: &fleet.Input{Problem: problem}, plan: &model.Plan{}}
		a := &adviser{made: made, class: &model.PodClass{Pods: pods}, waiting: pods}
		if raised := a.raise(info.Reason, &model.NearestMiss{Pool: "general"}); raised != nil || len(made.raises) > 0 {
			t.Errorf("%s: %+v", info.Reason, raised)
		}
	}
}

// contested is a NodePool with a limit for which pods of three Deployments wait.
func contested(annotations, limits string) string {
	const deployment = `
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}}, template: {
  metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: %[3]d, memory: %[4]s}}}]}}}}`
	return fmt.Sprintf(`{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general, annotations: {%s}}, spec: {limits: {%s}, template: {spec: {
  nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}, requirements: [
  {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: karpenter.azure.com/sku-family, operator: In, values: [D]},
  {key: karpenter.azure.com/sku-cpu, operator: Lt, values: ["33"]}]}}}}`,
		annotations, limits) +
		fmt.Sprintf(deployment, "api", 20, 1, "1Gi") + fmt.Sprintf(deployment, "batch", 20, 1, "2Gi") + fmt.Sprintf(deployment, "ml", 1, 14, "40Gi")
}

// runOn runs nap with an input, and returns what it prints, and its exit code.
func runOn(t *testing.T, input string, args ...string) (string, string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(t.Context(), args, "test", command.Streams{In: strings.NewReader(input), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

// Other pods take room of a limit, too: with one that is raised for the asked pod alone it would
// wait as before.
func TestRaisedLimitGivesThePodAPlace(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, limits string
		// raised finds the new limit in the answer.
		raised string
	}{
		"cpu":     {limits: "cpu: 32", raised: `"cpu": ?"(\d+)"`},
		"nodes":   {limits: "nodes: 1", raised: `"nodes": ?"(\d+)"`},
		"dollars": {annotations: `karpenter.azure.com/max-hourly-cost: "1.1"`, raised: `max-hourly-cost=([0-9.]+)`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := runOn(t, contested(c.annotations, c.limits), "explain", "deploy/ml", "--region", "eastus", "-v", "-f", "-")
			found := regexp.MustCompile(c.raised).FindStringSubmatch(strings.Join(strings.Fields(out), " "))
			if code != 2 || found == nil {
				t.Fatalf("exit code %d, no limit to raise:\n%s%s", code, out, errs)
			}
			limits, annotations := c.limits, c.annotations
			if limits != "" {
				limits, _, _ = strings.Cut(limits, ":")
				limits += ": " + found[1]
			} else {
				annotations, _, _ = strings.Cut(annotations, ":")
				annotations += `: "` + found[1] + `"`
			}
			out, errs, _ = runOn(t, contested(annotations, limits), "plan", "--region", "eastus", "-f", "-")
			if strings.Contains(out, "pending") || !strings.Contains(out, "default/ml") {
				t.Errorf("pods wait with %s %s:\n%s%s", annotations, limits, out, errs)
			}
		})
	}
}
