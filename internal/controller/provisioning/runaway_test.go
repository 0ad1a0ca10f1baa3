package provisioning

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

// fault is what keeps a pod from the machines that are bought for it.
type fault struct {
	// objects are there from the beginning, beside a NodePool and the pod.
	objects []client.Object
	// spoil changes a node before it is there, arrive the cluster afterwards.
	spoil  func(node *corev1.Node)
	arrive func(w *world, node *corev1.Node)
	// fits is what the scheduler says of the pod and a node, beside room and taints.
	fits func(node *corev1.Node) bool
	// pod changes the pod, pool the NodePool.
	pod  func(*corev1.Pod)
	pool func(*karpv1.NodePool)
	// runs says that the pod is to run in the end, on one of so many machines.
	runs     bool
	machines int
	// waits says that the purchase is not over: its node is not initialized.
	waits bool
	// told is part of what an event says within two minutes; empty where the first
	// machine does.
	told string
}

// agent is a DaemonSet, agentPod what admission makes of its pods.
func agent(limits corev1.ResourceList) client.Object {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "agent", Generation: 1}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Limits: limits}}}
	return ds
}

func cores(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

// agentComes puts the DaemonSet's pod on a node, with requests that the template does
// not have.
func agentComes(w *world, node *corev1.Node) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent-" + node.Name, UID: types.UID("agent-" + node.Name),
			CreationTimestamp: metav1.Now(), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: ptr.To(true)},
			}},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "a",
			Resources: corev1.ResourceRequirements{Requests: cores("1500m")}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err := w.kube.Create(w.ctx, pod); err != nil {
		w.t.Fatal(err)
	}
}

// operatorComes puts a pod on a node that belongs to no DaemonSet and names the node
// itself, as operators of storage and networks do.
func operatorComes(w *world, node *corev1.Node) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "engine-" + node.Name, UID: types.UID("engine-" + node.Name),
			CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "a",
			Resources: corev1.ResourceRequirements{Requests: cores("1500m")}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err := w.kube.Create(w.ctx, pod); err != nil {
		w.t.Fatal(err)
	}
}

// diskOfPod gives the pod a disk that is made when the pod is scheduled.
func diskOfPod(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
}

func unboundDisk() []client.Object {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: "disk.csi.azure.com",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "data"},
		Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disks")},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	return []client.Object{class, pvc}
}

// diskIn makes the disk in a zone, whatever the node's.
func diskIn(zone string) func(*world, *corev1.Node) {
	return func(w *world, _ *corev1.Node) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
				}},
			}}}},
		}}
		pvc := unboundDisk()[1].(*corev1.PersistentVolumeClaim)
		pvc.Spec.VolumeName, pvc.Status.Phase = "pv", corev1.ClaimBound
		w.mirror.feed.Apply(pv)
		w.mirror.feed.Apply(pvc)
	}
}

// uninitialized keeps a node from being initialized by what is done to it.
func uninitialized(by func(*corev1.Node)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		delete(n.Labels, karpv1.NodeInitializedLabelKey)
		by(n)
	}
}

// smaller lets a node have 0.7 cores less than its size promises.
func smaller(n *corev1.Node) {
	less := n.Status.Allocatable.Cpu().DeepCopy()
	less.Sub(resource.MustParse("700m"))
	n.Status.Allocatable[corev1.ResourceCPU] = less
}

func faults() map[string]fault {
	return map[string]fault{
		"DaemonSet that states limits alone": {
			objects: []client.Object{agent(cores("1500m"))}, arrive: agentComes, runs: true, machines: 1,
		},
		"LimitRange that gives a DaemonSet's pods requests": {
			objects: []client.Object{agent(nil), &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "requests", UID: "requests"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, DefaultRequest: cores("1500m")},
				}},
			}},
			arrive: agentComes, runs: true, machines: 1,
		},
		"webhook that gives a DaemonSet's pods requests": {
			objects: []client.Object{agent(nil)}, arrive: agentComes, runs: true, machines: 2, told: "its DaemonSet pods (kube-system/agent) take cpu 1.5",
		},
		"pods that belong to the node and to no DaemonSet": {
			arrive: operatorComes, machines: 3, told: "engine-",
		},
		"machine that is smaller than promised": {
			spoil: smaller, runs: true, machines: 2, told: "cpu is 1.2 and not 1.9",
		},
		"taint that stays": {
			spoil: stayingTaint, machines: 3, told: "it has the taint example.com/agent=missing:NoSchedule",
		},
		"label that never comes": {
			pod:   func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "gold"} },
			spoil: func(n *corev1.Node) { delete(n.Labels, "tier") }, machines: 3, told: "it lacks the label tier=gold",
			fits: func(n *corev1.Node) bool { return n.Labels["tier"] == "gold" },
		},
		"volume that is made in another zone": {
			objects: unboundDisk(), pod: func(p *corev1.Pod) {
				diskOfPod(p)
				p.Status.Conditions[0].Message = "0/1 nodes are available: 1 node(s) had volume node affinity conflict."
			},
			arrive: diskIn("eastus-2"), runs: true, machines: 2, told: "VolumeTopology (it has",
			fits: func(n *corev1.Node) bool { return n.Labels[corev1.LabelTopologyZone] == "eastus-2" },
		},
		"volume that is made in a zone without machines": {
			objects: unboundDisk(), pod: diskOfPod, arrive: diskIn("eastus-7"), machines: 1, told: "eastus-7",
			fits: func(n *corev1.Node) bool { return false },
		},
		"startup taint that stays": {
			pool: func(p *karpv1.NodePool) {
				p.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "example.com/agent", Value: "missing", Effect: corev1.TaintEffectNoSchedule}}
			},
			spoil: uninitialized(stayingTaint), machines: 1, waits: true, told: "it still has the startup taint example.com/agent=missing:NoSchedule",
		},
		"device that is never registered": {
			pod: func(p *corev1.Pod) {}, spoil: uninitialized(func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourceMemory) }),
			fits: func(*corev1.Node) bool { return false }, machines: 1, waits: true, told: "it does not report the resource memory",
		},
		"kubelet that is never ready": {
			spoil: uninitialized(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }),
			fits:  func(*corev1.Node) bool { return false }, machines: 1, waits: true, told: "its kubelet is not Ready",
		},
		"volume that the scheduler alone knows of": {
			pod: func(p *corev1.Pod) {
				p.Status.Conditions[0].Message = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
			},
			spoil: func(n *corev1.Node) { n.Labels[corev1.LabelArchStable] = "amd64" },
			fits:  func(*corev1.Node) bool { return false }, machines: 3,
			told: "the scheduler says: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind",
		},
		"no cause that anything shows": {
			fits:     func(*corev1.Node) bool { return false },
			machines: 3, told: "nothing is known that speaks against it",
		},
	}
}

// launch gives a claim the machine that it asks for first.
func (f *fault) launch(w *world, claim karpv1.NodeClaim) {
	size, zone := "", "eastus-1"
	for _, r := range claim.Spec.Requirements {
		switch r.Key {
		case corev1.LabelInstanceTypeStable:
			size = r.Values[0]
		case corev1.LabelTopologyZone:
			zone = r.Values[0]
		}
	}
	var n int64
	if _, err := fmt.Sscanf(size, "Standard_D%ds_v5", &n); err != nil {
		w.t.Fatalf("the claim asks for %q", size)
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(n*1000-100, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(n*4<<30-1<<30, resource.BinarySI),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node := readyNode("node-" + claim.Name)
	node.UID, node.CreationTimestamp = types.UID("uid-"+claim.Name), metav1.Now()
	node.Status.Capacity, node.Status.Allocatable = room, room.DeepCopy()
	maps.Copy(node.Labels, claim.Labels)
	maps.Copy(node.Labels, map[string]string{
		karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true", karpv1.CapacityTypeLabelKey: "spot",
		corev1.LabelInstanceTypeStable: size, corev1.LabelTopologyZone: zone,
	})
	if f.spoil != nil {
		f.spoil(node)
	}
	if err := w.kube.Create(w.ctx, node); err != nil {
		w.t.Fatal(err)
	}
	w.update(types.NamespacedName{Name: claim.Name}, &claim, func() {
		claim.Status = karpv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID, NodeName: node.Name, Capacity: room, Allocatable: room.DeepCopy()}
		if node.Labels[karpv1.NodeInitializedLabelKey] != "" {
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
		}
	})
	if f.arrive != nil {
		f.arrive(w, node)
	}
}

// lands binds the pod to a node that takes it, as the scheduler does.
func (w *world) lands(f *fault) bool {
	var pods corev1.PodList
	var nodes corev1.NodeList
	if err := w.kube.List(w.ctx, &pods); err != nil {
		w.t.Fatal(err)
	}
	if err := w.kube.List(w.ctx, &nodes); err != nil {
		w.t.Fatal(err)
	}
	used := map[string]int64{}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Name == "web-00" && p.Spec.NodeName != "" {
			return true
		}
		used[pods.Items[i].Spec.NodeName] += pods.Items[i].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if len(n.Spec.Taints) == 0 && used[n.Name]+1500 <= n.Status.Allocatable.Cpu().MilliValue() && (f.fits == nil || f.fits(n)) {
			w.bind("web-00", n.Name)
			return true
		}
	}
	return false
}

// play lets ten minutes pass. It returns how many machines were bought, whether the
// pod runs, and when an event first told of the fault.
func (f *fault) play(w *world) (machines int, runs bool, told time.Duration) {
	for _, o := range f.objects {
		w.mirror.feed.Apply(o)
	}
	begin, seen := time.Now(), map[string]time.Time{}
	for ; time.Since(begin) < 10*time.Minute; time.Sleep(retryAfter) {
		for _, claim := range w.claims() {
			since, known := seen[claim.Name]
			if !known {
				seen[claim.Name] = time.Now()
			}
			if known && time.Since(since) >= 20*time.Second && claim.Status.NodeName == "" {
				f.launch(w, claim)
			}
		}
		runs = w.lands(f)
		w.sync()
		w.plan()
		if told == 0 && strings.Contains(strings.Join(w.recorder.all(), "\n"), f.told) {
			told = time.Since(begin)
		}
	}
	return len(w.claims()), runs, told
}

// The bar: whatever keeps a pod from its machines, there are at most three of them in
// the first ten minutes, and within two an event on the pod says what is wrong.
func TestFaultsNeverMakePurchasesRunAway(t *testing.T) {
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := waitingPods(1, "1500m")[0].(*corev1.Pod)
				pod.CreationTimestamp = metav1.Now()
				if f.pod != nil {
					f.pod(pod)
				}
				pool := nodePool()
				if f.pool != nil {
					f.pool(pool)
				}
				w := newWorld(t, pool, pod)
				time.Sleep(time.Second)
				machines, runs, told := f.play(w)
				if machines > f.machines || machines == 0 {
					t.Errorf("%d machines were bought, want %d", machines, f.machines)
				}
				if runs != f.runs {
					t.Errorf("the pod runs: %v, want %v", runs, f.runs)
				}
				if f.told != "" && (told == 0 || told > 2*time.Minute) {
					t.Errorf("an event tells of it after %s, want 2m or less: %q", told, w.recorder.of(event.ReasonPurchaseFailed))
				}
				if failed := metricstest.Value(t, w.registry, "nap_provision_purchases_failed_total", "unused"); f.told != "" && (failed == 0) != f.waits {
					t.Errorf("%v purchases are counted as failed", failed)
				}
			})
		})
	}
}
