package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// issuerOf is the issuer of the tokens of a cluster's ServiceAccounts.
func issuerOf(ctx context.Context, cfg *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return "", err
	}
	text, err := client.RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var says struct {
		Issuer string `json:"issuer"`
	}
	err = json.Unmarshal(text, &says)
	return says.Issuer, err
}

// prepare makes the chart's values, and renders it once, so that values that it does not
// take are refused before anything is made.
func (i *installation) prepare(ctx context.Context) error {
	installer, err := helmrelease.New(i.rest, i.flags.namespace, i.op.now)
	if err != nil {
		return err
	}
	last, err := installer.Current(ctx, releaseName)
	if err != nil {
		return err
	}
	values, err := i.flags.readValues()
	if err != nil {
		return err
	}
	if shadowed(values) {
		return errors.New("--values: shadow.enabled is true, and a shadow only watches: leave it out to have nap buy, " +
			"or install the shadow by helm (docs/shadow.md)")
	}
	given := runtime.DeepCopyJSON(values)
	if last != nil && last.Config != nil {
		i.shadow = shadowed(last.Config)
		values = charts.Overlay(values, last.Config)
	}
	settings := i.settings(values)
	if err := i.choosePool(given, values, settings); err != nil {
		return err
	}
	ours := map[string]any{"settings": settings}
	if i.shadow {
		ours["shadow"] = map[string]any{"enabled": false}
	}
	if reference := i.imageReference(); reference != "" {
		if ours["image"], err = imageValues(reference); err != nil {
			return err
		}
	} else if had, _ := values["image"].(map[string]any); (had["repository"] == nil || had["repository"] == "") && !i.flags.remove {
		return errors.New("which image of nap? give --image REPOSITORY:TAG, or set NAP_IMAGE; " +
			"make image and make push IMAGE=REPOSITORY:TAG make one (docs/install.md)")
	}
	if limits := memoryValues(i.facts.Kubernetes, values); limits != nil {
		k := i.facts.Kubernetes
		ours["resources"] = limits
		i.memory = fmt.Sprintf("%dGi, for %d nodes and %d pods", prerequisites.MemoryLimit(k.Nodes, k.Pods), k.Nodes, k.Pods)
	}
	i.values = charts.Overlay(ours, values)
	if i.flags.remove {
		i.account, i.deployment = releaseName, releaseName
		return nil
	}
	return i.names()
}

// settings are those that follow from the cluster and the flags.
func (i *installation) settings(values map[string]any) map[string]any {
	c := i.facts.Cluster
	settings := map[string]any{"clusterName": c.Name, "armResourceGroup": c.ResourceGroup, "azureSubscriptionId": c.Subscription}
	if cloud, _ := i.lookupEnv("ARM_CLOUD"); cloud != "" {
		settings["armCloud"] = cloud
	}
	if had, _ := values["settings"].(map[string]any); i.changed("default-node-pools") || had["defaultNodePools"] == nil {
		settings["defaultNodePools"] = i.flags.pools
	}
	if i.flags.subnet != "" {
		settings["vnetSubnetId"] = i.flags.subnet
	}
	return settings
}

// choosePool finds the agent pool of nap's machines: that of --machines-pool, which the settings
// get then, or else that of the values, so that none is made which nothing uses. Given are the
// values of --values alone, which the flag must not contradict.
func (i *installation) choosePool(given, values, settings map[string]any) error {
	setting := func(of map[string]any, name string) string {
		text, _, _ := unstructured.NestedString(of, "settings", name)
		return text
	}
	mode := setting(values, "provisionMode")
	i.pool = i.flags.machines
	if i.pool == noPool {
		i.pool = ""
	}
	if !i.changed("machines-pool") {
		i.modeGiven = mode != ""
		i.pool = cmp.Or(setting(values, "aksMachinesPoolName"), i.pool)
		if mode == config.ModeVMs {
			i.pool = ""
		}
		return nil
	}
	i.modeGiven = true
	if i.pool != "" && (mode == "" || mode == config.ModeVMs) {
		mode = config.ModeAKSMachines
	}
	if i.pool == "" {
		mode = config.ModeVMs
	}
	settings["provisionMode"] = mode
	if i.pool != "" {
		settings["aksMachinesPoolName"] = i.pool
	}
	for _, name := range []string{"provisionMode", "aksMachinesPoolName"} {
		theirs, ours := setting(given, name), settings[name]
		if theirs != "" && ours != nil && theirs != ours {
			return fmt.Errorf("--machines-pool: got %q, for which settings.%s is %s, and --values has %s: leave one of them out",
				i.flags.machines, name, ours, theirs)
		}
	}
	return nil
}

// shadowed reports whether values of the chart make a shadow, which only watches.
func shadowed(values map[string]any) bool {
	on, _, _ := unstructured.NestedBool(values, "shadow", "enabled")
	return on
}

// chartMemoryLimit is the limit of memory that the chart has by itself, in bytes.
const chartMemoryLimit = 1 << 30

// memoryValues are the chart's resources for a cluster that takes more memory than the chart
// allows by itself; nil for others, and where the values have a limit.
func memoryValues(k *prerequisites.Kubernetes, values map[string]any) map[string]any {
	given, _ := values["resources"].(map[string]any)
	limits, _ := given["limits"].(map[string]any)
	if limits["memory"] != nil || prerequisites.MemoryLimitDoes(chartMemoryLimit, k.Nodes, k.Pods) {
		return nil
	}
	out := map[string]any{"limits": map[string]any{"memory": fmt.Sprintf("%dGi", prerequisites.MemoryLimit(k.Nodes, k.Pods))}}
	if requests, _ := given["requests"].(map[string]any); requests["memory"] == nil {
		out["requests"] = map[string]any{"memory": fmt.Sprintf("%dMi", prerequisites.MemoryOf(k.Nodes, k.Pods)>>20)}
	}
	return out
}

func (i *installation) imageReference() string {
	given, _ := i.lookupEnv("NAP_IMAGE")
	return cmp.Or(i.flags.image, given)
}

// chart is the release of nap with the values and those of its identity.
func (i *installation) chart(clientID string) charts.Release {
	over := map[string]any{"workloadIdentity": map[string]any{"clientId": clientID}}
	if !i.modeGiven {
		mode := map[string]any{"provisionMode": config.ModeVMs}
		if i.pool != "" {
			mode = map[string]any{"provisionMode": config.ModeAKSMachines, "aksMachinesPoolName": i.pool}
		}
		over["settings"] = mode
	}
	return charts.Release{
		Chart: "nap", Name: releaseName, Namespace: i.flags.namespace, Kubernetes: i.facts.Kubernetes.Version,
		Values: charts.Overlay(over, runtime.DeepCopyJSON(i.values)),
	}
}

// names learns from the chart what it calls nap's Deployment and ServiceAccount.
func (i *installation) names() error {
	release := i.chart(noClientID)
	rendered, err := release.Render()
	if err != nil {
		return fmt.Errorf("%w; nothing was made", err)
	}
	objects, err := manifest.Parse([]byte(rendered.Manifest))
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			d := appsv1.Deployment{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d)
			i.deployment, i.replicas, i.account = d.Name, replicasOf(&d), d.Spec.Template.Spec.ServiceAccountName
			return err
		}
	}
	return errors.New("the chart nap has no Deployment: this is a fault of nap, report it")
}

// noClientID stands for the client id of an identity that is not made yet.
const noClientID = "CLIENT_ID"

// releases are what is installed, in order: the definitions, and then nap.
func (i *installation) releases() []charts.Release {
	return []charts.Release{
		{Chart: "nap-crd", Name: releaseDefinitions, Namespace: i.flags.namespace, Kubernetes: i.facts.Kubernetes.Version},
		i.chart(cmp.Or(i.plan.ClientID, noClientID)),
	}
}

// installReleases installs them.
func (i *installation) installReleases(ctx context.Context) error {
	releases := i.releases()
	if i.op.dryRun {
		for _, r := range releases {
			would := &dryRelease{Name: r.Name, Chart: r.Chart, Namespace: r.Namespace, Undo: uninstall(r.Name, r.Namespace)}
			if r.Name == releaseName {
				would.Memory, would.Shadow = i.memory, i.shadow
			}
			i.op.wouldInstall(would)
		}
		return nil
	}
	installer, err := helmrelease.New(i.rest, i.flags.namespace, i.op.now)
	if err != nil {
		return err
	}
	if err := installable(ctx, installer, releases); err != nil {
		return err
	}
	if err := i.makeNamespace(ctx); err != nil {
		return err
	}
	for _, r := range releases {
		outcome, err := installer.Install(ctx, r)
		if err != nil {
			return fmt.Errorf("release %s: %w", r.Name, err)
		}
		i.op.say("release %s in namespace %s: %s", r.Name, r.Namespace, outcome)
	}
	if i.shadow {
		i.op.say("release %s: was a shadow, which only watches; with shadow.enabled=false it buys", releaseName)
	}
	if i.memory != "" {
		i.op.say("release %s: memory limit %s", releaseName, i.memory)
	}
	return nil
}

// makeNamespace makes nap's namespace, in which pods are held to the strictest standard.
func (i *installation) makeNamespace(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(i.rest)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: i.flags.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
	case err != nil:
		return fmt.Errorf("make namespace %s: %w", i.flags.namespace, err)
	default:
		i.op.say("namespace %s: made", i.flags.namespace)
	}
	return nil
}

// scaledDown says that a Deployment has fewer replicas than its release; empty where it does not. An
// autoscaler may take some, and never the last one.
func (i *installation) scaledDown(ctx context.Context, kube kubernetes.Interface, d *appsv1.Deployment) (string, error) {
	has := replicasOf(d)
	if has >= i.replicas {
		return "", nil
	}
	if scaled, err := helmrelease.Autoscaled(ctx, kube, d.Namespace, d.Name); err != nil || scaled && has > 0 {
		return "", err
	}
	return fmt.Sprintf("Deployment %s was scaled to %d of the %d replicas of its release; run this again, or: "+
		"kubectl --namespace %s scale deployment/%[1]s --replicas=%[3]d", d.Name, has, i.replicas, d.Namespace), nil
}

// replicasOf is how many replicas a Deployment is to have.
func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// rolledOut says why a Deployment is not as it should be; empty where it is.
func rolledOut(d *appsv1.Deployment) string {
	want, s := replicasOf(d), &d.Status
	if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want || s.AvailableReplicas < want || s.Replicas > want {
		return fmt.Sprintf("%d of %d replicas are available", s.AvailableReplicas, want)
	}
	return ""
}
