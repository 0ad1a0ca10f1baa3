package kube

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// fullPod is a running pod with all that planning reads, and much that it does not.
func fullPod() *corev1.Pod {
	p := workload(1, 1)[0]
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1("{}")}}
	p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "karpenter.sh/do-not-disrupt": "true"}
	always := corev1.ContainerRestartPolicyAlways
	more := corev1.Container{
		Name: "more", Image: "image", Command: []string{"run"}, Args: []string{"fast"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
		Ports:          []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
		Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		VolumeMounts:   []corev1.VolumeMount{{Name: "data"}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1}, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	side := more
	side.Name, side.Ports, side.RestartPolicy = "side", nil, &always
	p.Spec.Containers = append(p.Spec.Containers, more)
	p.Spec.InitContainers = []corev1.Container{side}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	p.Spec.NodeName = "node"
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "more", ImageID: "sha", ContainerID: "id", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		// A resize is under way: the container holds more than it asks for.
		Resources:          &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}},
		AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse("3")},
	}}}
	return p
}

func fullNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node", Labels: map[string]string{"kubernetes.io/hostname": "node"},
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "karpenter.sh/do-not-disrupt": "true"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "azure:///x", Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:    corev1.NodeSystemInfo{BootID: "boot", KubeletVersion: "v1.33.2"},
			Images:      []corev1.ContainerImage{{Names: []string{"image"}}}, VolumesInUse: []corev1.UniqueVolumeName{"volume"},
			VolumesAttached: []corev1.AttachedVolume{{Name: "volume"}},
		},
	}
}

// What planning reads of a trimmed object is what it reads of the whole one.
func TestTrimChangesNothingThatIsMirrored(t *testing.T) {
	whole := NewMirror(fleet.NewStore(), Settings{})
	trimmed := NewMirror(fleet.NewStore(), Settings{})
	pod, node := fullPod(), fullNode()
	for _, o := range []any{pod, node} {
		if _, err := Trim(o); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := trimmed.record(pod), whole.record(fullPod()); !reflect.DeepEqual(got, want) {
		t.Errorf("pod: got %+v, want %+v", got, want)
	}
	if got, want := trimmed.record(node), whole.record(fullNode()); !reflect.DeepEqual(got, want) {
		t.Errorf("node: got %+v, want %+v", got, want)
	}
}

// What is kept is stated here field by field, so that a line that is lost is noticed.
func TestTrimKeepsWhatIsReadAndDropsTheRest(t *testing.T) {
	pod, node := fullPod(), fullNode()
	for _, o := range []any{pod, node} {
		if _, err := Trim(o); err != nil {
			t.Fatal(err)
		}
	}
	whole := fullPod()
	whole.ManagedFields = nil
	delete(whole.Annotations, corev1.LastAppliedConfigAnnotation)
	whole.Spec.Volumes = whole.Spec.Volumes[1:]
	for _, list := range [][]corev1.Container{whole.Spec.InitContainers, whole.Spec.Containers[1:]} {
		c := &list[0]
		c.Command, c.Args, c.Env, c.VolumeMounts, c.ReadinessProbe, c.TerminationMessagePolicy = nil, nil, nil, nil, nil, ""
	}
	s := &whole.Status.ContainerStatuses[0]
	s.ImageID, s.ContainerID, s.State = "", "", corev1.ContainerState{}
	if !reflect.DeepEqual(pod, whole) {
		t.Errorf("pod: got %+v, want %+v", pod, whole)
	}
	rest := fullNode()
	rest.ManagedFields = nil
	delete(rest.Annotations, corev1.LastAppliedConfigAnnotation)
	rest.Status.Images, rest.Status.VolumesInUse, rest.Status.VolumesAttached = nil, nil, nil
	if !reflect.DeepEqual(node, rest) {
		t.Errorf("node: got %+v, want %+v", node, rest)
	}
}

// Informers hand on more than objects, and an object twice.
func TestTrimLeavesAloneWhatIsNoObjectAndWhatIsTrimmed(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "node"}
	if got, err := Trim(gone); err != nil || got != any(gone) {
		t.Errorf("a tombstone: got %v, %v", got, err)
	}
	pod := fullPod()
	_, _ = Trim(pod)
	// Were it written again, the race detector would see it beside this reader.
	once := pod.DeepCopy()
	done := make(chan bool)
	go func() { done <- reflect.DeepEqual(pod, once) }()
	_, _ = Trim(pod)
	if !<-done || !reflect.DeepEqual(pod, once) {
		t.Errorf("a trimmed pod was changed: %+v", pod)
	}
}

// A status that repeats the spec is dropped, and what the pod takes stays the same.
func TestTrimDropsWhatContainersHoldOnlyWhereTheyAskForIt(t *testing.T) {
	repeats := func(p *corev1.Pod) *corev1.Pod {
		s, c := &p.Status.ContainerStatuses[0], &p.Spec.Containers[1]
		s.Resources, s.AllocatedResources = c.Resources.DeepCopy(), c.Resources.Requests.DeepCopy()
		return p
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod) *corev1.Pod
		kept   bool
	}{
		"the same":  {repeats, false},
		"a resize":  {func(p *corev1.Pod) *corev1.Pod { return p }, true},
		"no status": {func(p *corev1.Pod) *corev1.Pod { p.Status.ContainerStatuses[0].Resources = nil; return p }, false},
		"another amount allocated": {func(p *corev1.Pod) *corev1.Pod {
			repeats(p).Status.ContainerStatuses[0].AllocatedResources["cpu"] = resource.MustParse("2")
			return p
		}, true},
		"another limit": {func(p *corev1.Pod) *corev1.Pod {
			repeats(p).Status.ContainerStatuses[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2")}
			return p
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod, whole := tc.change(fullPod()), tc.change(fullPod())
			if _, err := Trim(pod); err != nil {
				t.Fatal(err)
			}
			if kept := pod.Status.ContainerStatuses[0].Resources != nil; kept != tc.kept {
				t.Errorf("kept: got %v, want %v", kept, tc.kept)
			}
			if got, want := readSpec(pod).Requests, readSpec(whole).Requests; !reflect.DeepEqual(got, want) {
				t.Errorf("the pod takes %v, want %v", got, want)
			}
		})
	}
}
