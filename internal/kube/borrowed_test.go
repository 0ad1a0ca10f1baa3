package kube

import (
	"errors"
	"strings"
	"testing"
)

// Pods that nap cannot tell from an object are told: none vanishes without a word.
func TestReplicasWithoutTemplateAreTold(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaNodePool, metadata: {name: a}, spec: {replicas: 3, template: {pod: {}}}}`: "" +
			"nap cannot tell them from spec.replicas: 3",
		`{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {name: a}, spec: {replicas: 3, template: {spec: {}}}}`: "",
		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {replicas: 3, workloadRef: {kind: Deployment, name: d}}}`: "" +
			"its pods have the template of Deployment d (spec.workloadRef)",
		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {replicas: 0, workloadRef: {kind: Deployment, name: d}}}`: "",
	} {
		manifests, err := Decode(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		expanded := Expand(manifests)
		said := strings.Join(expanded.Notes, "\n")
		if err := errors.Join(expanded.Problems...); err != nil {
			said += err.Error()
		}
		if !strings.Contains(said, want) || (want == "") != (said == "") {
			t.Errorf("%s: said %q, want %q", text, said, want)
		}
	}
}
