package kube

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/api/crds"
)

// decoded lists what a text holds, one line per object, problem and ignored thing.
func decoded(text string) []string {
	manifests, err := Decode(strings.NewReader(text), "f")
	var lines []string
	for i := range manifests {
		lines = append(lines, manifests[i].Name())
		for _, ignored := range manifests[i].Ignored {
			lines = append(lines, "ignored: "+ignored)
		}
	}
	if err != nil {
		lines = append(lines, strings.Split(err.Error(), "\n")...)
	}
	return lines
}

func TestDecodeDocumentsLikeKubectl(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"generated names count up": {
			`{kind: Pod, apiVersion: v1, metadata: {generateName: p-}}
---
{kind: Pod, apiVersion: v1, metadata: {generateName: p-}}
---
{kind: Job, apiVersion: batch/v1, metadata: {generateName: p-}}
---
{kind: Pod, apiVersion: v1, metadata: {}}`,
			"Pod default/p-1; Pod default/p-2; Job default/p-1; f: document 4: Pod: metadata.name is missing",
		},
		"items of a list of one kind say nothing of themselves": {
			`{kind: PodList, apiVersion: v1, items: [{metadata: {name: a}}, {metadata: {name: b}}]}`,
			"Pod default/a; Pod default/b",
		},
		"lists hold lists": {
			`{kind: List, apiVersion: v1, items: [{kind: List, apiVersion: v1, items: [{kind: Node, apiVersion: v1, metadata: {name: a}}]}, {metadata: {name: b}}]}`,
			"Node a; f: document 1, item 2: has no apiVersion and kind, every document must be a Kubernetes object",
		},
		"an old version of a kind is refused instead of overlooked": {
			`{kind: NodePool, apiVersion: karpenter.sh/v1beta1, metadata: {name: a}}`,
			`f: document 1: NodePool a: apiVersion: got "karpenter.sh/v1beta1", allowed: karpenter.sh/v1; nap convert -f FILE writes it so`,
		},
		"kinds of other groups are none of ours": {
			`{kind: Node, apiVersion: longhorn.io/v1beta2, metadata: {name: a}}`,
			"Node a",
		},
		"a kind in other letters is refused instead of overlooked": {
			`{kind: Nodepool, apiVersion: karpenter.sh/v1, metadata: {name: a}}`,
			`f: document 1: a: kind: got "Nodepool", which karpenter.sh/v1 does not have, use: NodePool`,
		},
		"a kind with letters swapped": {
			`{kind: Deploymnet, apiVersion: apps/v1, metadata: {name: a}}`,
			`f: document 1: a: kind: got "Deploymnet", which apps does not have, use: Deployment`,
		},
		"a kind of the core group with a letter too few": {
			`{kind: Servic, apiVersion: v1, metadata: {name: a}}`,
			`f: document 1: a: kind: got "Servic", which v1 does not have, use: Service`,
		},
		"a kind of nap in other letters": {
			`{kind: AKSNodeclass, apiVersion: karpenter.azure.com/v1beta1, metadata: {name: a}}`,
			`f: document 1: a: kind: got "AKSNodeclass", which karpenter.azure.com does not have, use: AKSNodeClass`,
		},
		"a kind in the group of another": {
			`{kind: NodePool, apiVersion: karpenter.azure.com/v1beta1, metadata: {name: a}}`,
			`f: document 1: a: apiVersion: got "karpenter.azure.com/v1beta1", which has no kind NodePool, use: karpenter.sh/v1`,
		},
		"a group that no cluster has": {
			`{kind: Deployment, apiVersion: app/v1, metadata: {name: a}}`,
			`f: document 1: a: apiVersion: got "app/v1", which no cluster has, use the group: apps`,
		},
		"kinds that Kubernetes has no more": {
			`{kind: PodSecurityPolicy, apiVersion: policy/v1beta1, metadata: {name: a}}`,
			"PodSecurityPolicy a",
		},
		"a kind of operators that looks like another": {
			`{kind: Deploymnet, apiVersion: example.com/v1, metadata: {name: a, namespace: b}}`,
			"Deploymnet b/a",
		},
		"a template": {"kind: Pod\n{{ if .Values.x }}\n",
			"f: document 1: holds {{ }}, which is for a template engine: render it first, for instance with helm template"},
		"a missing version": {`{kind: Pod, metadata: {name: a}}`, "f: document 1: Pod a: apiVersion is missing"},
		"a missing kind":    {`{apiVersion: v1, metadata: {name: a}}`, "f: document 1: kind is missing, next to apiVersion v1"},
		"a name that YAML takes for something else": {
			`{kind: Pod, apiVersion: v1, metadata: {name: y}}`,
			"f: document 1: is not a Kubernetes object: metadata.name: got a bool, must be a string: put it in quotes",
		},
		"a number that is too large": {
			`{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {priority: 2147483648}}`,
			"f: document 1: Pod a: spec.priority: got a number 2147483648, must be a whole number of at most 2147483647",
		},
	} {
		if diff := cmp.Diff(c.want, strings.Join(decoded(c.text), "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecodeReplicationControllers(t *testing.T) {
	manifests, err := Decode(strings.NewReader(`
{kind: ReplicationController, apiVersion: v1, metadata: {name: rc}, spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}}
---
{kind: ReplicationController, apiVersion: v1, metadata: {name: bare}}`), "f")
	if err != nil {
		t.Fatal(err)
	}
	out := Expand(manifests)
	var names []string
	for _, o := range out.Objects.List() {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"default", "rc-0", "rc-1"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(out.Problems) != 1 || !strings.Contains(out.Problems[0].Error(), "ReplicationController default/bare: spec.template: is missing") {
		t.Errorf("problems %v", out.Problems)
	}
}

// What an API server would have refused is refused with its field, before anything
// is planned for it.
func TestDecodeNamesValuesOutOfRange(t *testing.T) {
	for spec, want := range map[string]string{
		`{containers: [{name: c, ports: [{containerPort: 80, hostPort: 99999}]}]}`:                                                                                   "spec.containers[].ports[].hostPort: got 99999, allowed: 1 to 65535",
		`{containers: [{name: c, ports: [{containerPort: 80, hostPort: -1}]}]}`:                                                                                      "spec.containers[].ports[].hostPort: got -1, allowed: 1 to 65535",
		`{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}}`: "preferredDuringSchedulingIgnoredDuringExecution[0].weight: got 0, allowed: 1 to 100",
		`{affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: a}}]}}}`:                           "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: got 101, allowed: 1 to 100",
	} {
		manifests, err := Decode(strings.NewReader(`{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: `+spec+`}`), "f")
		if err != nil || len(manifests) != 1 {
			t.Fatalf("%s: %v", spec, err)
		}
		if got := readSpec(manifests[0].Object.(*corev1.Pod)).Invalid; !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

// TestKindsOfNamespacesGetTheDefaultOne takes the scope of a kind from the client of its API
// group, whose method asks for a namespace where the kind has one, and from the definitions of
// Karpenter's kinds.
func TestKindsOfNamespacesGetTheDefaultOne(t *testing.T) {
	scopes := clientScopes(reflect.TypeFor[kubernetes.Interface]())
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		scopes[d.Spec.Group+"/"+d.Spec.Names.Kind] = string(d.Spec.Scope) == "Namespaced"
	}
	for known, empty := range kinds() {
		version, kind, _ := strings.Cut(known, " ")
		group, _, _ := strings.Cut(version, "/")
		o := empty()
		if of := reflect.TypeOf(o).Elem().PkgPath(); strings.HasPrefix(of, "k8s.io/api/") {
			group = of
		}
		want, told := scopes[group+"/"+kind]
		if !told {
			t.Errorf("%s: neither a client nor a definition tells whether it is namespaced", known)
		}
		if got := namespaced(o); got != want {
			t.Errorf("%s: namespaced is %v, want %v", known, got, want)
		}
	}
}

// clientScopes is whether the types that a set of clients creates are namespaced, by package
// and name.
func clientScopes(clients reflect.Type) map[string]bool {
	scopes := map[string]bool{}
	for group := range clients.Methods() {
		if group.Type.NumOut() != 1 || group.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		for getter := range group.Type.Out(0).Methods() {
			if getter.Type.NumOut() != 1 || getter.Type.Out(0).Kind() != reflect.Interface {
				continue
			}
			if create, has := getter.Type.Out(0).MethodByName("Create"); has {
				of := create.Type.In(1).Elem()
				scopes[of.PkgPath()+"/"+of.Name()] = getter.Type.NumIn() == 1
			}
		}
	}
	return scopes
}
