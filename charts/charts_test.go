package charts

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
)

// least are the values without which the chart says what is missing.
func least() []string {
	return []string{
		"image.repository=registry.example/nap", "settings.clusterName=cluster", "settings.armResourceGroup=group",
		"settings.azureSubscriptionId=00000000-0000-0000-0000-000000000001", "workloadIdentity.clientId=client",
	}
}

// Resource ids of the kinds that settings name.
const (
	provider = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/"
	identity = provider + "Microsoft.ManagedIdentity/userAssignedIdentities"
	diskSet  = provider + "Microsoft.Compute/diskEncryptionSets/d"
)

// everything switches on what is off without values, but for monitors.
func everything() []string {
	return []string{
		"prices.configMap=prices", "metrics.certificateSecret=certificate", "dashboards.enabled=true", "settings.enableProfiling=true",
		"settings.featureGates.nodeOverlay=true", "settings.featureGates.capacityBuffer=true", "settings.ignoreDraRequests=false",
		"settings.engine=karpenter", "extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy.example:3128",
		"networkPolicy.extraEgress[0].ports[0].port=3128", "podLabels.team=platform", "additionalLabels.stage=production",
		"workloadIdentity.tenantId=tenant", "imagePullSecrets[0].name=pull",
	}
}

// monitored has a monitor of one kind, "pod" or "service": both would read every series twice.
func monitored(by string) []string {
	return []string{"metrics." + by + "Monitor.enabled=true", "rules.enabled=true"}
}

// command runs a command of this program.
func command(args ...string) (string, error) {
	var out bytes.Buffer
	err := Run(args, &out)
	return out.String(), err
}

// template renders chart nap as a release of the name in a namespace.
func template(t *testing.T, release, namespace string, set []string, more ...string) string {
	t.Helper()
	args := append([]string{"template", release, "nap", "--namespace", namespace}, more...)
	for _, s := range set {
		args = append(args, "--set", s)
	}
	out, err := command(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects decodes documents strictly: an unknown field or one that is there twice fails.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		if strings.TrimSpace(regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(doc, "")) == "" {
			continue
		}
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("%v\n%s", err, doc)
			continue
		}
		out = append(out, o)
	}
	return out
}

// the returns the one object of a type.
func the[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of the type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestChartsHaveNoLint(t *testing.T) {
	for _, set := range [][]string{nil, everything(), monitored("pod"), monitored("service")} {
		args := []string{"lint", "nap", "--namespace", "nap-system"}
		for _, s := range append(least(), set...) {
			args = append(args, "--set", s)
		}
		if _, err := command(args...); err != nil {
			t.Errorf("%v: %v", set, err)
		}
	}
	if _, err := command("lint", "nap-crd"); err != nil {
		t.Error(err)
	}
	if _, err := command("lint", "nap", "--set", "replicas=many"); err == nil {
		t.Error("lint takes a value that the schema does not allow")
	}
}

func TestRenderedObjectsDecodeStrictly(t *testing.T) {
	for name, text := range map[string]string{
		"least":      template(t, "nap", "nap-system", least()),
		"everything": template(t, "nap", "nap-system", slices.Concat(least(), everything(), monitored("pod"))),
		"plain monitor": template(t, "nap", "nap-system",
			slices.Concat(least(), monitored("service"), []string{"metrics.secure=false"})),
		"karpenter": template(t, "karpenter", "kube-system", least(), "--values", "nap/profiles/karpenter.yaml"),
	} {
		kinds := map[string]int{}
		seen := map[string]bool{}
		for _, o := range objects(t, text) {
			m, err := meta.Accessor(o)
			if err != nil {
				t.Fatal(err)
			}
			kind := o.GetObjectKind().GroupVersionKind().Kind
			kinds[kind]++
			if id := kind + " " + m.GetNamespace() + "/" + m.GetName(); seen[id] {
				t.Errorf("%s: %s is there twice", name, id)
			} else {
				seen[id] = true
			}
			if m.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" || m.GetLabels()["app.kubernetes.io/instance"] == "" {
				t.Errorf("%s: %s %s has the labels %v", name, kind, m.GetName(), m.GetLabels())
			}
		}
		for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "ServiceAccount", "ClusterRole"} {
			if kinds[kind] == 0 {
				t.Errorf("%s: there is no %s", name, kind)
			}
		}
		if kinds["PodMonitor"]+kinds["ServiceMonitor"] != kinds["PrometheusRule"] || kinds["PrometheusRule"] > 1 {
			t.Errorf("%s: %v", name, kinds)
		}
	}
	text, err := command("template", "nap-crd", "nap-crd")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("nap-crd/templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n, kept := len(objects(t, text)), strings.Count(text, "helm.sh/resource-policy: keep"); n < 5 || n != len(files) || kept != n {
		t.Errorf("%d definitions of which %d are kept, in %d files", n, kept, len(files))
	}
	if text, err = command("template", "nap-crd", "nap-crd", "--set", "keep=false"); err != nil || strings.Contains(text, "resource-policy") {
		t.Errorf("with keep=false they stay: %v", err)
	}
}

// granted lists what the rendered roles grant to the controller's account, and fails
// where something else is bound.
func granted(t *testing.T, all []runtime.Object, account, namespace string) []string {
	t.Helper()
	var out []string
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range all {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			rules["ClusterRole "+o.Name] = o.Rules
		case *rbacv1.Role:
			rules["Role "+o.Name] = o.Rules
		}
	}
	grant := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject, in string) {
		if len(subjects) != 1 || subjects[0].Kind != rbacv1.ServiceAccountKind || subjects[0].Name != account || subjects[0].Namespace != namespace {
			if !strings.HasPrefix(ref.Name, "system:") && !strings.HasSuffix(ref.Name, "-metrics-reader") {
				t.Errorf("%s is bound to %v", ref.Name, subjects)
			}
			return
		}
		for _, rule := range rules[ref.Kind+" "+ref.Name] {
			out = append(out, lines(rule, in)...)
		}
	}
	for _, o := range all {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			grant(o.RoleRef, o.Subjects, "")
		case *rbacv1.RoleBinding:
			grant(o.RoleRef, o.Subjects, o.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// lines are the permissions of a rule as [rbac.Permission] prints them.
func lines(rule rbacv1.PolicyRule, namespace string) []string {
	var out []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				names := rule.ResourceNames
				if len(names) == 0 {
					names = []string{""}
				}
				for _, n := range names {
					out = append(out, rbac.Permission{
						Verb: verb, Group: group, Resource: name, Subresource: sub, Namespace: namespace, Name: n,
					}.String())
				}
			}
		}
	}
	return out
}

func TestRolesGrantWhatControllerAsksFor(t *testing.T) {
	own, secure, pools := rbac.BootstrapTokens, rbac.SecureMetrics, rbac.DefaultNodePools
	for _, c := range []struct {
		set      []string
		features []rbac.Feature
		memory   string // the namespace of lease and memory
	}{
		{nil, []rbac.Feature{rbac.LeaderElection, own, secure}, "nap-system"},
		{[]string{"settings.disableLeaderElection=true", "replicas=1", "metrics.secure=false"}, []rbac.Feature{own}, "nap-system"},
		{[]string{"settings.featureGates.nodeOverlay=true"}, []rbac.Feature{rbac.LeaderElection, own, secure, rbac.NodeOverlay}, "nap-system"},
		{[]string{"settings.featureGates.nodeOverlay=false"}, []rbac.Feature{rbac.LeaderElection, own, secure}, "nap-system"},
		{
			[]string{"settings.featureGates.capacityBuffer=true", "settings.ignoreDraRequests=false", "settings.engine=karpenter"},
			[]rbac.Feature{rbac.LeaderElection, own, secure, rbac.CapacityBuffer, rbac.DynamicResources}, "nap-system",
		},
		{
			[]string{"settings.featureGates.podDeletionCostManagement=true", "settings.schedulerConfig=podTopologySpread: {}"},
			[]rbac.Feature{rbac.LeaderElection, own, secure, rbac.PodDeletionCost, rbac.SchedulerConfig}, "nap-system",
		},
		{[]string{"settings.bootstrapTokens=cluster"}, []rbac.Feature{rbac.LeaderElection, rbac.ClusterBootstrapTokens, secure}, "nap-system"},
		{[]string{"settings.bootstrapTokens=none"}, []rbac.Feature{rbac.LeaderElection, secure}, "nap-system"},
		{[]string{"bootstrapTokenSecret.name=token"}, []rbac.Feature{rbac.LeaderElection, secure}, "nap-system"},
		{[]string{"settings.provisionMode=aksmachineapi", "settings.aksMachinesPoolName=nap"}, []rbac.Feature{rbac.LeaderElection, secure}, "nap-system"},
		{[]string{"settings.defaultNodePools=None"}, []rbac.Feature{rbac.LeaderElection, own, secure}, "nap-system"},
		{[]string{"settings.leaderElectionNamespace=leases"}, []rbac.Feature{rbac.LeaderElection, own, secure}, "leases"},
	} {
		t.Run(strings.Join(c.set, " "), func(t *testing.T) {
			all := objects(t, template(t, "nap", "nap-system", append(least(), c.set...)))
			if !slices.Contains(c.set, "settings.defaultNodePools=None") {
				c.features = append(c.features, pools)
			}
			required, err := rbac.Required(c.memory, c.features...)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, p := range required {
				want = append(want, p.String())
			}
			slices.Sort(want)
			if got := granted(t, all, "nap", "nap-system"); !slices.Equal(got, want) {
				t.Errorf("granted and not asked for: %q\nasked for and not granted: %q", without(got, want), without(want, got))
			}
			machines := 0
			for _, o := range all {
				if b, ok := o.(*rbacv1.ClusterRoleBinding); ok && strings.HasPrefix(b.RoleRef.Name, "system:") {
					machines++
				}
			}
			if want := 2 * strings.Count(fmt.Sprint(c.features), " "+string(own)); machines != want && !slices.Contains(c.features, own) {
				t.Errorf("%d of Kubernetes' roles are bound for machines, want %d", machines, want)
			} else if slices.Contains(c.features, own) && machines != 2 {
				t.Errorf("%d of Kubernetes' roles are bound for machines, want 2", machines)
			}
		})
	}
}

// A shadow writes its report, and nothing that the chart grants lets it write more.
func TestShadowMayWriteItsReportAlone(t *testing.T) {
	text := template(t, "nap", "nap-system", []string{"image.repository=registry.example/nap", "shadow.enabled=true"})
	all := objects(t, text)
	var writes []string
	for _, permission := range granted(t, all, "nap", "nap-system") {
		verb, what, _ := strings.Cut(permission, " ")
		switch {
		case verb == "get" || verb == "list" || verb == "watch":
		case strings.HasPrefix(what, "shadowreports.nap.azure.com"):
			writes = append(writes, permission)
		default:
			t.Errorf("the shadow may %s", permission)
		}
	}
	if !slices.Equal(writes, []string{"create shadowreports.nap.azure.com", "update shadowreports.nap.azure.com nap"}) {
		t.Errorf("the writes are %q", writes)
	}
	for _, o := range all {
		if role, is := o.(*rbacv1.ClusterRole); is {
			for _, rule := range role.Rules {
				if len(without(rule.Verbs, []string{"get", "list", "watch"})) > 0 && !slices.Equal(rule.Resources, []string{"shadowreports"}) {
					t.Errorf("ClusterRole %s has %v of %v", role.Name, rule.Verbs, rule.Resources)
				}
			}
		}
	}
	deployment := the[*appsv1.Deployment](t, all)
	if surge := deployment.Spec.Strategy.RollingUpdate.MaxSurge; *deployment.Spec.Replicas != 1 || surge == nil || surge.IntValue() != 0 {
		t.Errorf("%d replicas, and %v more at an update", *deployment.Spec.Replicas, surge)
	}
	if env := environment(t, text); env["SHADOW"] != "true" || env["BOOTSTRAP_TOKENS"] != "" {
		t.Errorf("the variables are %v", env)
	}
	crds, err := command("template", "nap-crd", "nap-crd", "--set", "shadowOnly=true")
	if err != nil || strings.Count(crds, "kind: CustomResourceDefinition") != 1 || !strings.Contains(crds, "name: shadowreports.nap.azure.com") {
		t.Errorf("nap-crd with shadowOnly=true has %d definitions: %v", strings.Count(crds, "kind: CustomResourceDefinition"), err)
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func TestPodIsPlacedAndConfined(t *testing.T) {
	d := the[*appsv1.Deployment](t, objects(t, template(t, "nap", "nap-system", least())))
	pod := d.Spec.Template.Spec
	if *d.Spec.Replicas != 2 || pod.PriorityClassName != "system-cluster-critical" || pod.ServiceAccountName != "nap" {
		t.Errorf("replicas %d, priority class %q, account %q", *d.Spec.Replicas, pod.PriorityClassName, pod.ServiceAccountName)
	}
	own := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
	if own.Key != "karpenter.sh/nodepool" || own.Operator != corev1.NodeSelectorOpDoesNotExist {
		t.Errorf("nap may run on nodes which it removes: %v", own)
	}
	if pod.TopologySpreadConstraints[0].TopologyKey != corev1.LabelTopologyZone || len(pod.Tolerations) != 1 {
		t.Errorf("spread %v, tolerations %v", pod.TopologySpreadConstraints, pod.Tolerations)
	}
	if d.Spec.Template.Labels["azure.workload.identity/use"] != "true" {
		t.Errorf("labels %v", d.Spec.Template.Labels)
	}
	c := pod.Containers[0]
	if !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("security contexts %v, %v", pod.SecurityContext, c.SecurityContext)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.StartupProbe == nil {
		t.Errorf("probes %v, %v, %v", c.LivenessProbe, c.ReadinessProbe, c.StartupProbe)
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources %v", c.Resources)
	}
}

func TestKarpenterProfileTakesItsPlace(t *testing.T) {
	all := objects(t, template(t, "karpenter", "kube-system", least(), "--values", "nap/profiles/karpenter.yaml"))
	d := the[*appsv1.Deployment](t, all)
	if d.Name != "karpenter" || d.Namespace != "kube-system" || d.Spec.Template.Labels["app.kubernetes.io/name"] != "karpenter" {
		t.Errorf("Deployment %s/%s with labels %v", d.Namespace, d.Name, d.Spec.Template.Labels)
	}
	if s := the[*corev1.Service](t, all); s.Name != "karpenter" || s.Spec.Ports[0].Name != "http-metrics" || s.Spec.Ports[0].Port != 8080 {
		t.Errorf("Service %s with ports %v", s.Name, s.Spec.Ports)
	}
	if a := the[*corev1.ServiceAccount](t, all); a.Name != "karpenter-sa" {
		t.Errorf("ServiceAccount %s", a.Name)
	}
	env := d.Spec.Template.Spec.Containers[0].Env
	for _, want := range []corev1.EnvVar{
		{Name: "LEADER_ELECTION_NAME", Value: "karpenter-leader-election"}, {Name: "METRICS_SECURE", Value: "false"},
	} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %v", want)
		}
	}
	required, err := rbac.Required("kube-system", rbac.LeaderElection, rbac.BootstrapTokens)
	if err != nil {
		t.Fatal(err)
	}
	if got := granted(t, all, "karpenter-sa", "kube-system"); len(got) != len(required) {
		t.Errorf("%d permissions, want %d", len(got), len(required))
	}
}

func TestNotesHaveNextThreeCommands(t *testing.T) {
	notes := template(t, "nap", "nap-system", least(), "--notes")
	commands := regexp.MustCompile(`(?m)^  kubectl .*$`).FindAllString(notes, -1)
	if len(commands) != 3 || !strings.Contains(commands[0], "--namespace nap-system rollout status deployment/nap") {
		t.Errorf("%q", commands)
	}
}

func TestPackagedChartRendersTheSame(t *testing.T) {
	dir := t.TempDir()
	for _, chart := range []string{"nap", "nap-crd"} {
		out, err := command("package", chart, "--version", "v1.2.3", "--destination", dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, chart+"-1.2.3.tgz"); strings.TrimSpace(out) != want {
			t.Errorf("packaged %s, want %s", out, want)
		}
	}
	args := []string{"template", "nap", filepath.Join(dir, "nap-1.2.3.tgz"), "--namespace", "nap-system"}
	for _, s := range append(least(), "dashboards.enabled=true") {
		args = append(args, "--set", s)
	}
	got, err := command(args...)
	if err != nil {
		t.Fatal(err)
	}
	want := template(t, "nap", "nap-system", append(least(), "dashboards.enabled=true"))
	got = strings.NewReplacer("nap-1.2.3", "nap-0.1.0", `"v1.2.3"`, `"0.1.0"`, "nap:v1.2.3", "nap:0.1.0").Replace(got)
	if got != want {
		t.Error("the archive renders something else than its folder")
	}
}

// A DNS cache on the node has an address of the node, which no selector of pods matches: names
// may be asked for anywhere.
func TestNamesMayBeAskedOfTheNode(t *testing.T) {
	for _, o := range objects(t, template(t, "nap", "nap-system", least())) {
		policy, is := o.(*networkingv1.NetworkPolicy)
		if !is {
			continue
		}
		found := slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return len(r.To) == 0 && slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				return p.Port != nil && p.Port.IntValue() == 53 && p.Protocol != nil && *p.Protocol == corev1.ProtocolUDP
			})
		})
		if !found {
			t.Errorf("NetworkPolicy %s lets no names through to the node: %+v", policy.Name, policy.Spec.Egress)
		}
		return
	}
	t.Error("there is no NetworkPolicy")
}
