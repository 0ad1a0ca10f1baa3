package takeover

import (
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

const namespace = "nap-system"

// want is the release nap with a number of replicas.
func want(replicas int) charts.Release {
	return charts.Release{Chart: "nap", Name: "nap", Namespace: namespace, Values: map[string]any{
		"image":            map[string]any{"repository": "registry.example/nap", "tag": "v1"},
		"settings":         map[string]any{"clusterName": "c", "armResourceGroup": "g", "azureSubscriptionId": "00000000-0000-0000-0000-000000000001"},
		"workloadIdentity": map[string]any{"clientId": "client"}, "replicas": replicas,
	}}
}

// TestHelmTakesOverWhatNapEnableInstalls: Helm lists the release, upgrades it with its
// values, rolls it back to what nap enable has installed, and removes it; and nap enable
// goes on from Helm's revisions.
func TestHelmTakesOverWhatNapEnableInstalls(t *testing.T) {
	l := labtest.Start(t, lab.Config{})
	ctx := t.Context()
	if _, err := l.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	installer, err := helmrelease.New(l.Config(), namespace, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	install := func(replicas int, outcome helmrelease.Outcome) {
		t.Helper()
		if got, err := installer.Install(ctx, want(replicas)); err != nil || got != outcome {
			t.Fatalf("%s, %v; want %s", got, err, outcome)
		}
	}
	install(2, helmrelease.Installed)
	install(2, helmrelease.Unchanged)
	replicas := func(want int32) {
		t.Helper()
		d, err := l.Client().AppsV1().Deployments(namespace).Get(ctx, "nap", metav1.GetOptions{})
		if err != nil || *d.Spec.Replicas != want {
			t.Fatalf("the Deployment: %v, want %d replicas", err, want)
		}
	}
	replicas(2)

	settings := cli.New()
	settings.KubeConfig = l.Env.Kubeconfig
	settings.SetNamespace(namespace)
	kube.ManagedFieldsManager = "helm" // as the program's name is
	helm := action.NewConfiguration()
	if err := helm.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	newest := func(version int, status common.Status) *releasev1.Release {
		t.Helper()
		list := action.NewList(helm)
		all, err := list.Run()
		if err != nil || len(all) != 1 {
			t.Fatalf("helm list: %d releases, %v", len(all), err)
		}
		r, ok := all[0].(*releasev1.Release)
		if !ok || r.Name != "nap" || r.Version != version || r.Info.Status != status {
			t.Fatalf("helm list: %+v, want revision %d, %s", r.Info, version, status)
		}
		return r
	}
	installed := newest(1, common.StatusDeployed)

	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace, upgrade.ReuseValues, upgrade.ServerSideApply = namespace, true, "auto"
	upgrade.WaitStrategy = kube.HookOnlyStrategy // as helm has it without --wait
	chart := installed.Chart
	if _, err := upgrade.RunWithContext(ctx, "nap", chart, map[string]any{"replicas": 3}); err != nil {
		t.Fatalf("helm upgrade: %v", err)
	}
	newest(2, common.StatusDeployed)
	replicas(3)

	rollback := action.NewRollback(helm)
	rollback.Version, rollback.ServerSideApply, rollback.WaitStrategy = 1, "auto", kube.HookOnlyStrategy
	if err := rollback.Run("nap"); err != nil {
		t.Fatalf("helm rollback: %v", err)
	}
	newest(3, common.StatusDeployed)
	replicas(2)

	install(4, helmrelease.Upgraded)
	newest(4, common.StatusDeployed)
	replicas(4)

	uninstall := action.NewUninstall(helm)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run("nap"); err != nil {
		t.Fatalf("helm uninstall: %v", err)
	}
	if _, err := l.Client().AppsV1().Deployments(namespace).Get(ctx, "nap", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment after helm uninstall: %v", err)
	}
	install(2, helmrelease.Installed)
}
