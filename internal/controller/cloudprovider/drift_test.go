package cloudprovider

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
)

// aged is a claim whose machine is up to date, and its node.
func (w *world) aged(t *testing.T) (*corev1.Node, func() *karpv1.NodeClaim) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aks-a"}}
	node.Status.NodeInfo.KubeletVersion = "v1.35.1"
	if err := w.kube.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	hash := w.class.Annotations[v1beta1.AnnotationHash]
	return node, func() *karpv1.NodeClaim {
		c := claim("a")
		c.Annotations = map[string]string{v1beta1.AnnotationHash: hash, v1beta1.AnnotationHashVersion: v1beta1.HashVersion}
		c.Status.ImageID, c.Status.NodeName = strings.ToUpper(w.class.Status.Images[0].ID), "aks-a"
		return c
	}
}

func (w *world) wantDrift(t *testing.T, name string, c *karpv1.NodeClaim, want karpcloud.DriftReason) {
	t.Helper()
	if got, err := w.port.IsDrifted(t.Context(), c); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
}

// wantVersionDrift is for a node that says which version its kubelet is of, or nothing yet.
func (w *world) wantVersionDrift(t *testing.T, node *corev1.Node, kubelet string, want bool) {
	t.Helper()
	says := node.DeepCopy()
	says.Status.NodeInfo.KubeletVersion = kubelet
	if versionDiffers(says, w.class) != want {
		t.Errorf("a kubelet of version %q: differs %t, want %t", kubelet, !want, want)
	}
}

func TestDriftReasonsInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { c.KubeletIdentityClientID = "present" })
		node, fresh := w.aged(t)
		label := func(key, value string) {
			t.Helper()
			node.Labels = map[string]string{key: value}
			if err := w.kube.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		old := func() *karpv1.NodeClaim {
			c := fresh()
			c.Status.ImageID = "/CommunityGalleries/old"
			return c
		}
		w.wantDrift(t, "up to date, its identity not on the node", fresh(), "")
		label(v1beta1.LabelKubeletIdentity, "present")
		w.wantDrift(t, "up to date", fresh(), "")
		gone := fresh()
		gone.Status.NodeName = "aks-gone"
		w.wantDrift(t, "up to date, its node gone", gone, "")
		w.wantVersionDrift(t, node, "", false)
		w.wantVersionDrift(t, node, "v1.34.0", true)
		w.wantDrift(t, "an old image", old(), DriftImage)
		label(v1beta1.LabelKubeletIdentity, "another")
		w.wantDrift(t, "another identity", fresh(), DriftKubeletIdentity)
		w.wantDrift(t, "another identity comes before an old image", old(), DriftKubeletIdentity)
		node.Status.NodeInfo.KubeletVersion = "v1.34.0"
		if err := w.kube.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		w.wantDrift(t, "an old kubelet comes before another identity", old(), DriftVersion)
		c := old()
		c.Annotations[v1beta1.AnnotationHash] = "1"
		w.wantDrift(t, "an old class comes before an old kubelet", c, DriftNodeClass)
		c = fresh()
		node.Status.NodeInfo.KubeletVersion = "v1.35.1"
		if err := w.kube.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		label(v1beta1.LabelKubeletIdentity, "present")
		c.Annotations = map[string]string{v1beta1.AnnotationHash: "1", v1beta1.AnnotationHashVersion: "v2"}
		w.wantDrift(t, "hashes that cannot be compared", c, "")
	})
}

func TestNoVersionOrImageDriftWhileClassIsUnresolved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		node, fresh := w.aged(t)
		node.Status.NodeInfo.KubeletVersion = "v1.34.0"
		if err := w.kube.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		c := fresh()
		c.Status.ImageID = "/CommunityGalleries/old"
		w.wantDrift(t, "a class that is resolved", c, DriftVersion)
		w.class.StatusConditions().SetFalse(v1beta1.ConditionKubernetesVersionReady, "Unknown", "")
		w.class.StatusConditions().SetFalse(v1beta1.ConditionImagesReady, v1beta1.ReasonKubernetesUpgrade, "")
		if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.wantDrift(t, "a class that is not", c, "")
	})
}

// A fleet of AKS machines that Karpenter's Azure provider has made keeps its machines: that names
// their images as AKS does (pkg/providers/instance/aksmachineinstanceutils.go).
func TestAKSMachineOfKarpenterHasNotDrifted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, w.aksMachines)
		_, fresh := w.aged(t)
		created, err := w.port.Create(t.Context(), claim("a", need(karpv1.CapacityTypeLabelKey, "on-demand")))
		if err != nil {
			t.Fatal(err)
		}
		c := fresh()
		c.Status.ProviderID, c.Status.ImageID = created.Status.ProviderID, image.NodeImageVersion(created.Status.ImageID)
		w.wantDrift(t, c.Status.ImageID, c, "")
		c.Status.ImageID = "AKSUbuntu-2404gen2containerd-202001.01.0"
		w.wantDrift(t, c.Status.ImageID, c, DriftImage)
		pool := w.config.PoolID() + "/machines/a"
		if id := created.Annotations[v1beta1.AnnotationAKSMachine]; id != pool {
			t.Errorf("the NodeClaim names its machine %q, want %s", id, pool)
		}
	})
}

func TestClusterConfigDriftWhenAKSWouldRecreate(t *testing.T) {
	const listed = 3 * time.Minute // what AKS said is believed for less
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { w.aksMachines(c); c.KubeletIdentityClientID = "present" })
		node, fresh := w.aged(t)
		created, err := w.port.Create(t.Context(), claim("a", need(karpv1.CapacityTypeLabelKey, "on-demand")))
		if err != nil {
			t.Fatal(err)
		}
		machine := func() *karpv1.NodeClaim {
			c := fresh()
			c.Status.ProviderID = created.Status.ProviderID
			return c
		}
		// What AKS writes on the nodes of its machines is AKS's own matter.
		node.Labels = map[string]string{v1beta1.LabelKubeletIdentity: "another"}
		if err := w.kube.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		w.wantDrift(t, "a machine as AKS would make it now", machine(), "")
		w.Server.DriftMachines()
		time.Sleep(listed)
		w.wantDrift(t, "a machine that AKS would make anew", machine(), DriftClusterConfig)
		c := machine()
		c.Status.ImageID = "/CommunityGalleries/old"
		w.wantDrift(t, "an old image comes first", c, DriftImage)

		calls := func() int64 {
			return w.Server.Stats()["calls Microsoft.ContainerService/managedClusters/agentPools/machines/read"]
		}
		before := calls()
		for range 100 {
			w.wantDrift(t, "asked again", machine(), DriftClusterConfig)
		}
		if n := calls() - before; n > 1 {
			t.Errorf("a hundred questions within a moment took %d calls", n)
		}
		time.Sleep(listed)
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.ContainerService/managedClusters/agentPools/machines/read",
			Status: 403, Code: "AuthorizationFailed", Message: "No.",
		}); err != nil {
			t.Fatal(err)
		}
		if reason, err := w.port.IsDrifted(t.Context(), machine()); err == nil || reason != "" {
			t.Errorf("when AKS does not answer: %q, %v; want an error", reason, err)
		}
	})
}

func TestVersionDriftFollowsControlPlane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server = "v1.33.9"
		w.class.Status = v1beta1.AKSNodeClassStatus{}
		if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(*config.Config) {})
		check := func(when, version, image string) {
			t.Helper()
			w.resolve(t)
			if got := or(w.class.Status.KubernetesVersion, ""); got != version || !strings.Contains(w.class.Status.Images[0].ID, image) {
				t.Errorf("%s: version %s with image %s, want %s with %s", when, got, w.class.Status.Images[0].ID, version, image)
			}
		}
		check("at first", "1.33.9", "/images/2204gen2containerd/")
		node, fresh := w.aged(t)
		node.Status.NodeInfo.KubeletVersion = "v1.33.9"
		if err := w.kube.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		w.wantDrift(t, "before the upgrade", fresh(), "")
		w.server = "v1.34.1"
		time.Sleep(16 * time.Minute) // the version is asked for every quarter of an hour
		check("after the upgrade", "1.34.1", "/images/2404gen2containerd/")
		w.wantDrift(t, "after the upgrade", fresh(), DriftVersion)
		w.server = "v1.33.9" // another server of the control plane, not upgraded yet
		time.Sleep(16 * time.Minute)
		check("amid the upgrade", "1.34.1", "/images/2404gen2containerd/")
		created, err := w.port.Create(t.Context(), claim("b", need(karpv1.CapacityTypeLabelKey, "on-demand")))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		data, err := bootdata.Document(w.Server.Machines()[0].CustomData)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), `"kubernetes_version":"1.34.1"`) ||
			!strings.Contains(created.Status.ImageID, "/images/2404") {
			t.Errorf("a new machine runs %s with\n%s", created.Status.ImageID, data)
		}
	})
}

func TestVersionIsTheOneThatAPIServerEmulates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server = "v1.37.1 as 1.36"
		w.class.Status = v1beta1.AKSNodeClassStatus{}
		if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(*config.Config) {})
		for _, want := range []string{"1.36.0", "1.37.1"} {
			w.resolve(t)
			if got := or(w.class.Status.KubernetesVersion, ""); got != want {
				t.Errorf("machines of version %s, want %s", got, want)
			}
			w.server = "v1.37.1 as 1.37"
			time.Sleep(16 * time.Minute)
		}
	})
}

func TestUpgradeCheckIntervalSaysHowOftenVersionIsRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { c.UpgradeCheck = 10 * time.Second })
		if d := w.port.Classes.LookAgain(); d != 10*time.Second {
			t.Errorf("classes are looked at every %s", d)
		}
		w.resolve(t)
		w.server = "v1.36.0"
		w.Server.PublishImages("202606.16.0")
		time.Sleep(11 * time.Second)
		w.resolve(t)
		if got := or(w.class.Status.KubernetesVersion, ""); got != "1.36.0" || !strings.HasSuffix(w.class.Status.Images[0].ID, "/202606.16.0") {
			t.Errorf("after the interval: version %s, image %s", got, w.class.Status.Images[0].ID)
		}
	})
}

func TestSSHKeyDriftWithinWindowForNodeImages(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, fresh := w.aged(t)
		created, err := w.port.Create(t.Context(), claim("a", need(karpv1.CapacityTypeLabelKey, "on-demand")))
		if err != nil {
			t.Fatal(err)
		}
		machine := func() *karpv1.NodeClaim {
			c := fresh()
			c.Annotations[v1beta1.AnnotationSSHKeyHash] = created.Annotations[v1beta1.AnnotationSSHKeyHash]
			return c
		}
		w.wantDrift(t, "the key with which it was made", machine(), "")
		w.restart(t, func(c *config.Config) { c.SSHPublicKey += " of another" })
		w.wantDrift(t, "another key", machine(), DriftSSHKey)
		w.wantDrift(t, "a machine of which nobody knows the key", fresh(), "")
		w.port.MaintenanceMap(windowFrom(between(time.Now().Add(24*time.Hour), time.Now().Add(28*time.Hour))))
		time.Sleep(2 * time.Minute) // what was read before is believed for one
		w.wantDrift(t, "outside of the window", machine(), "")
		w.restart(t, func(c *config.Config) {
			c.AdminUsername = "somebody"
			c.SSHPublicKey = strings.TrimSuffix(c.SSHPublicKey, " of another")
		})
		w.wantDrift(t, "another user", machine(), DriftSSHKey)
	})
}
