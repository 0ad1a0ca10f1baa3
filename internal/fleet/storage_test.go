package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Only a pod with a node holds a claim that one pod may use at a time. One that waits may do so
// for ever, and keeps only its equals off.
func TestWaitingPodBlocksNoOtherUserOfOnePodClaim(t *testing.T) {
	pod := func(name string, age int64, change func(*Pod)) *Pod {
		p := &Pod{
			Ref: model.PodRef{Namespace: "default", Name: name}, Created: time.Unix(age, 0), Wanted: true,
			Spec: &PodSpec{Key: "template", Requests: Amounts{CPU: 100, Pods: 1}}, Labels: &Labels{},
			Owner: Owner{Kind: "Deployment", Name: "web"}, OwnerUID: "web-1", Claims: []string{"data"},
		}
		if change != nil {
			change(p)
		}
		return p
	}
	gated := func(p *Pod) { p.Wanted, p.Gated = false, true }
	bound := func(p *Pod) { p.Wanted, p.Node = false, "a" }
	nominated := func(p *Pod) { p.Nominated = "a" }
	for name, c := range map[string]struct {
		pods []*Pod
		// planned are the pods in classes, rejected what is said of the others.
		planned  []string
		rejected map[string]string
	}{
		"three replicas of one template": {
			pods:    []*Pod{pod("first", 1, nil), pod("second", 2, nil), pod("third", 3, nil)},
			planned: []string{"first"},
			rejected: map[string]string{
				"second": `volume claim "data" is ReadWriteOncePod, and pod default/first waits for it, too`,
				"third":  `volume claim "data" is ReadWriteOncePod, and pod default/first waits for it, too`,
			},
		},
		"an older template that fits no machine": {
			pods: []*Pod{pod("old", 1, nil), pod("new", 2, func(p *Pod) {
				p.OwnerUID, p.Spec = "web-2", &PodSpec{Key: "smaller", Requests: Amounts{CPU: 50, Pods: 1}}
			})},
			planned: []string{"new", "old"},
		},
		"another owner's pod of an equal spec": {
			pods:    []*Pod{pod("old", 1, nil), pod("new", 2, func(p *Pod) { p.OwnerUID = "web-2" })},
			planned: []string{"new", "old"},
		},
		"a pod behind a gate, or of another scheduler": {
			pods:    []*Pod{pod("old", 1, gated), pod("new", 2, nil)},
			planned: []string{"new"},
		},
		"a younger pod on a node": {
			pods:     []*Pod{pod("old", 1, nil), pod("new", 2, bound)},
			rejected: map[string]string{"old": `volume claim "data" is ReadWriteOncePod, and pod default/new uses it`},
		},
		"a younger pod that is expected on a node": {
			pods:     []*Pod{pod("old", 1, nil), pod("new", 2, nominated)},
			rejected: map[string]string{"old": `volume claim "data" is ReadWriteOncePod, and pod default/new waits for it, too`},
		},
		"a nomination for a node that is gone": {
			pods:    []*Pod{pod("old", 1, func(p *Pod) { p.Nominated, p.OwnerUID = "gone", "web-0" }), pod("new", 2, nil)},
			planned: []string{"new", "old"},
		},
	} {
		store := NewStore()
		store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
		store.Put(&Node{Name: "a", Ready: true, Allocatable: Amounts{CPU: 1000, Pods: 10}})
		store.Put(&StorageClass{Name: "disk", Driver: "disk.example.com"})
		store.Put(&VolumeClaim{Namespace: "default", Name: "data", Class: "disk", OnePod: true})
		for _, p := range c.pods {
			store.Put(p)
		}
		in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{Now: time.Unix(100, 0)})
		if err != nil {
			t.Fatal(err)
		}
		planned := map[string]bool{}
		for i := range in.Problem.Classes {
			for _, ref := range in.Problem.Classes[i].Pods {
				planned[ref.Name] = true
			}
		}
		want := map[string]bool{}
		for _, name := range c.planned {
			want[name] = true
		}
		rejected := map[string]string{}
		for _, r := range in.Rejected {
			rejected[r.Pod.Name] = r.Message
		}
		if diff := cmp.Diff(fmt.Sprint(want, c.rejected), fmt.Sprint(planned, rejected)); diff != "" {
			t.Errorf("%s: planned and rejected (-want +got):\n%s", name, diff)
		}
	}
}

// Volumes of two places each have twice as many together with every further one: a pod of twenty
// would take gigabytes.
func TestPlacesOfVolumesDoNotMultiplyWithoutEnd(t *testing.T) {
	for volumes, want := range map[int]model.Reason{7: "", 8: model.ReasonAsksTooMuch, 24: model.ReasonAsksTooMuch} {
		store := NewStore()
		store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
		p := &Pod{
			Ref: model.PodRef{Namespace: "default", Name: "p"}, Wanted: true, Labels: &Labels{},
			Spec: &PodSpec{Requests: Amounts{CPU: 100, Pods: 1}},
		}
		for i := range volumes {
			name := fmt.Sprint("v", i)
			at := func(side string) model.Requirements {
				return model.Requirements{{Key: side + name, Operator: model.Exists}}
			}
			store.Put(&Volume{Name: name, Alternatives: []model.Requirements{at("a"), at("b")}})
			store.Put(&VolumeClaim{Namespace: "default", Name: name, Volume: name, Bound: true})
			p.Claims = append(p.Claims, name)
		}
		store.Put(p)
		in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := model.Reason("")
		for _, r := range in.Rejected {
			got = r.Reason
		}
		if got != want {
			t.Errorf("%d volumes: got %v, want reason %q", volumes, in.Rejected, want)
		}
	}
}

// The scheduler puts a pod on no other node than the one that it has chosen for its volume, until
// the node is gone.
func TestVolumeThatIsMadeForANodeTiesItsPod(t *testing.T) {
	for name, c := range map[string]struct {
		node Node
		want string
	}{
		"a node that stays":  {Node{Name: "a"}, "[kubernetes.io/hostname In [host-a]]"},
		"a node that leaves": {Node{Name: "a", Deleting: true}, "[]"},
		"a node that is not": {Node{Name: "b"}, "[]"},
	} {
		store := NewStore()
		c.node.Ready, c.node.Allocatable = true, Amounts{CPU: 1000, Pods: 10}
		c.node.Labels = map[string]string{model.LabelHostname: "host-a"}
		store.Put(&c.node)
		store.Put(&StorageClass{Name: "disk", Driver: "disk.example.com"})
		store.Put(&VolumeClaim{Namespace: "default", Name: "data", Class: "disk", Node: "a"})
		store.Put(&Pod{
			Ref: model.PodRef{Namespace: "default", Name: "p"}, Wanted: true, Labels: &Labels{}, Claims: []string{"data"},
			Spec: &PodSpec{Requests: Amounts{CPU: 100, Pods: 1}},
		})
		in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(in.Problem.Classes[0].VolumeAlternatives); got != c.want {
			t.Errorf("%s: the pod may be at %s, want %s", name, got, c.want)
		}
	}
}

// The scheduler counts volumes that are attached to a node and that no pod there uses, once their
// PersistentVolume is there and names its driver.
func TestAttachedVolumesOfNoPodTakeSlots(t *testing.T) {
	store := NewStore()
	store.Put(&Node{Name: "a", Ready: true, Allocatable: Amounts{CPU: 1000, Pods: 10}})
	store.Put(&DriverLimits{Node: "a", Limits: map[string]int{"disk": 8}})
	store.Put(&VolumeClaim{Namespace: "default", Name: "data", Volume: "used", Bound: true})
	store.Put(&Pod{
		Ref: model.PodRef{Namespace: "default", Name: "p"}, Node: "a", Labels: &Labels{}, Claims: []string{"data"},
		Spec: &PodSpec{Requests: Amounts{CPU: 100, Pods: 1}},
	})
	for _, v := range []Volume{{Name: "used", CSI: true}, {Name: "left", CSI: true}, {Name: "elsewhere", CSI: true}, {Name: "old"}} {
		v.Driver = "disk"
		store.Put(&v)
	}
	attached := func(node, volume string) *Attachment {
		return &Attachment{Name: node + volume, Node: node, Driver: "disk", Volume: volume}
	}
	for _, volume := range []string{"used", "left", "old", "unknown", ""} {
		store.Put(attached("a", volume))
	}
	store.Put(attached("b", "elsewhere"))
	free := func() int {
		in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return in.Problem.Nodes[0].VolumeSlots["disk"]
	}
	if got := free(); got != 6 {
		t.Errorf("%d free slots of 8, want 6: one is used and one is still attached", got)
	}
	store.Remove(attached("a", "left"))
	if got := free(); got != 7 {
		t.Errorf("%d free slots of 8 after the volume is detached, want 7", got)
	}
}
