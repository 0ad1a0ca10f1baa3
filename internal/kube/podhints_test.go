package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// An object of an unknown kind that looks as if pods came of it is told, one that only speaks of pods
// is not.
func TestUnknownKindsThatMayMakePodsAreTold(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Spark": {`{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: a},
 spec: {driver: {cores: 1, memory: 512m}, executor: {instances: 4, cores: 2, memory: 4g}}}`, "spec.executor"},
		"Argo Workflow": {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: a},
 spec: {templates: [{name: main, dag: {}}, {name: a, container: {image: x}}]}}`, "spec.templates[1]"},
		"CloudNativePG": {`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: a},
 spec: {instances: 3, resources: {requests: {cpu: 2}}}}`, "spec"},
		"OpenTelemetry": {`{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, metadata: {name: a},
 spec: {replicas: 2, image: otel}}`, "spec"},
		"none wanted": {`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: a},
 spec: {instances: 0, resources: {requests: {cpu: 2}}}}`, ""},
		"pattern of a policy": {`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: a},
 spec: {rules: [{validate: {pattern: {spec: {containers: [{image: "*"}]}}}}]}}`, ""},
		"constraint": {`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: K8sRequired, metadata: {name: a},
 spec: {parameters: {containers: [{image: x}]}}}`, ""},
		"template of workflows": {`{apiVersion: argoproj.io/v1alpha1, kind: WorkflowTemplate, metadata: {name: a},
 spec: {templates: [{container: {image: x}}]}}`, ""},
		"monitor": {`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a},
 spec: {selector: {matchLabels: {a: b}}, endpoints: [{port: web}]}}`, ""},
		"certificate": {`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, spec: {secretName: a}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			if got := podHint(u); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
