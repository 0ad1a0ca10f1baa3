package cli

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// rest reaches the candidate's cluster.
func (c *candidate) rest() *rest.Config {
	c.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		c.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

// installer installs releases in the candidate's cluster by itself.
func (c *candidate) installer() *helmrelease.Installer {
	c.Helper()
	installer, err := helmrelease.New(c.rest(), releaseNamespace, time.Now)
	if err != nil {
		c.Fatal(err)
	}
	return installer
}

// values are those of the release nap.
func (c *candidate) values() map[string]any {
	c.Helper()
	last, err := c.installer().Current(c.Context(), releaseName)
	if err != nil || last == nil {
		c.Fatalf("release %v, %v", last, err)
	}
	return last.Config
}

// TestEnableMakesNapOfAShadow: as docs/shadow.md installs it, and says so once.
func TestEnableMakesNapOfAShadow(t *testing.T) {
	const says = "release nap: was a shadow, which only watches; with shadow.enabled=false it buys"
	c := ready(t)
	c.start()
	if _, err := c.installer().Install(t.Context(), charts.Release{
		Chart: "nap", Name: releaseName, Namespace: releaseNamespace, Kubernetes: "v1.35.1",
		Values: map[string]any{"image": map[string]any{"repository": "registry.example/nap"}, "shadow": map[string]any{"enabled": true}},
	}); err != nil {
		t.Fatal(err)
	}
	if text, code := c.enable(testImage, "--dry-run"); code != 0 || !strings.Contains(text, "  it is a shadow, which only watches;") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	text, _ := c.enable(testImage, "--timeout=0s")
	if !strings.Contains(text, says) || !strings.Contains(text, "release nap in namespace nap-system: upgraded") {
		t.Errorf("it does not say that the shadow is none any more:\n%s", text)
	}
	if on, found, _ := unstructured.NestedBool(c.values(), "shadow", "enabled"); on || !found {
		t.Errorf("the release's values are %v", c.values())
	}
	if text, _ = c.enable(testImage, "--timeout=0s"); strings.Contains(text, says) || !strings.Contains(text, "release nap in namespace nap-system: unchanged") {
		t.Errorf("the next run says it again:\n%s", text)
	}
}

// TestEnableKeepsTheFlagOfThePool: a later run does what its flag says, and without it leaves the
// release as it is and makes no pool that nothing uses.
func TestEnableKeepsTheFlagOfThePool(t *testing.T) {
	c := ready(t)
	c.start()
	pools := map[string]bool{}
	for _, run := range []struct{ flag, mode, pool string }{
		{"--machines-pool=none", "aksscriptless", ""},
		{"", "aksscriptless", ""},
		{"--machines-pool=second", "aksmachineapi", "second"},
		{"", "aksmachineapi", "second"},
		{"--machines-pool=machines", "aksmachineapi", "machines"},
		{"--machines-pool=none", "aksscriptless", "machines"},
		{"", "aksscriptless", "machines"},
	} {
		args := []string{testImage, "--timeout=0s"}
		if run.flag != "" {
			args = append(args, run.flag)
		}
		text, code := c.enable(args...)
		settings := c.values()["settings"].(map[string]any)
		if pool, _ := settings["aksMachinesPoolName"].(string); settings["provisionMode"] != run.mode || pool != run.pool {
			t.Errorf("%q: exit code %d, mode %v in pool %q, want %+v\n%s", run.flag, code, settings["provisionMode"], pool, run, text)
		}
		if run.mode == "aksmachineapi" {
			pools["agent pool "+run.pool+" of mode Machines: "] = true
		}
		for _, name := range []string{"machines", "second"} {
			step := "agent pool " + name + " of mode Machines: "
			if strings.Contains(text, step) && (!pools[step] || run.mode != "aksmachineapi") {
				t.Errorf("%q: a pool that nothing uses:\n%s", run.flag, text)
			}
		}
	}
}

// TestEnableMakesNoPoolAfterItFellBack: AKS had no machines to give, and has them later.
func TestEnableMakesNoPoolAfterItFellBack(t *testing.T) {
	const falls = "agent pool machines of mode Machines: not made, nap buys plain virtual machines"
	c := ready(t)
	c.start()
	fault, err := c.env.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Status: 400, Code: "NoRegisteredProviderFound",
		Message: "No registered resource provider found.", Operation: "Microsoft.ContainerService/managedClusters/agentPools/write"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := c.enable(testImage, "--timeout=0s"); !strings.Contains(text, falls) {
		t.Fatalf("it makes a pool:\n%s", text)
	}
	if err := c.env.Server.RemoveFault(fault.ID); err != nil {
		t.Fatal(err)
	}
	if text, _ := c.enable(testImage, "--timeout=0s"); strings.Contains(text, "agent pool") ||
		!strings.Contains(text, "release nap in namespace nap-system: unchanged") {
		t.Errorf("the next run:\n%s", text)
	}
}

// TestEnableRestoresScaledReplicas: nap that was scaled to zero is not ready, and gets its replicas
// back.
func TestEnableRestoresScaledReplicas(t *testing.T) {
	c := ready(t)
	c.start()
	if text, _ := c.enable(testImage, "--timeout=0s"); !strings.Contains(text, "0 of 2 replicas are available") {
		t.Fatal(text)
	}
	kube, err := kubernetes.NewForConfig(c.rest())
	if err != nil {
		t.Fatal(err)
	}
	deployments := kube.AppsV1().Deployments(releaseNamespace)
	d, err := deployments.Get(t.Context(), releaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Spec.Replicas = new(int32)
	if d, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	i := &installation{values: c.values(), flags: &enableFlags{namespace: releaseNamespace},
		facts: &prerequisites.Facts{Kubernetes: &prerequisites.Kubernetes{Version: "v1.35.1"}}}
	if err := i.names(); err != nil {
		t.Fatal(err)
	}
	const want = "Deployment nap was scaled to 0 of the 2 replicas of its release; run this again, or: " +
		"kubectl --namespace nap-system scale deployment/nap --replicas=2"
	if why, err := i.scaledDown(t.Context(), kube, d); err != nil || why != want {
		t.Errorf("%v, %q", err, why)
	}
	text, _ := c.enable(testImage, "--timeout=0s")
	d, err = deployments.Get(t.Context(), releaseName, metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 2 || !strings.Contains(text, "release nap in namespace nap-system: restored") {
		t.Errorf("%v, %d replicas:\n%s", err, *d.Spec.Replicas, text)
	}
}

// TestAutoscaledReplicasAreReady: fewer than the chart has, where a HorizontalPodAutoscaler says so.
func TestAutoscaledReplicasAreReady(t *testing.T) {
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "nap", Namespace: releaseNamespace}}
	scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: releaseName}
	i := &installation{replicas: 2}
	for replicas, ready := range map[int32]bool{0: false, 1: true, 2: true} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: releaseName, Namespace: releaseNamespace}}
		d.Spec.Replicas = &replicas
		if why, err := i.scaledDown(t.Context(), fake.NewClientset(scaler), d); err != nil || (why == "") != ready {
			t.Errorf("%d replicas: %v, %q", replicas, err, why)
		}
	}
}
