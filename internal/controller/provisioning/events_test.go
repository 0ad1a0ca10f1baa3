package provisioning

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/cli"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/kube"
)

func TestTrap21EventNamesPoolThatMatchesNoSize(t *testing.T) {
	none := nodePool(func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
			karpv1.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_A1_v2"},
			})
	})
	w := newWorld(t, objects(none, waitingPods(1, "1"))...)
	w.plan()
	w.wantClaims(0)
	got := w.recorder.of("FailedScheduling")
	if len(got) != 1 || !strings.Contains(got[0], "NodePool general") || !strings.Contains(got[0], "Standard_A1_v2") {
		t.Errorf("the events are %q, want one that names the NodePool and what it asks for", got)
	}
}

// TestEventAndCommandLineSayTheSame plans the same objects in the loop and on the command
// line: the event of a pod is made of the words that nap explain pod and nap plan print,
// which are those of the planner's scenarios ([explain.Describe]).
func TestEventAndCommandLineSayTheSame(t *testing.T) {
	pool := nodePool(func(np *karpv1.NodePool) {
		np.TypeMeta = metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}
	})
	pods := map[string]*corev1.Pod{}
	var all []client.Object
	for name, change := range map[string]func(*corev1.Pod){
		"huge": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("64")
		},
		"zone":  func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "eastus-3"} },
		"label": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"team": "payments"} },
		"device": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/fpga"] = resource.MustParse("1")
		},
		"invalid": func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Near"}} },
		"claim":   func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} },
	} {
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.Name, pod.UID = name, types.UID(name)
		change(pod)
		pods[name] = pod
		all = append(all, pod)
	}
	w := newWorld(t, objects(pool, all)...)
	w.plan()
	const longest = event.MostWaiting
	events := map[string]string{}
	for _, line := range w.recorder.of("FailedScheduling") {
		name, text, _ := strings.Cut(strings.TrimPrefix(line, "Warning FailedScheduling "), ": ")
		events[name] = strings.TrimPrefix(text, "Failed to schedule pod, ")
	}

	catalog, _ := testCatalogs{}.Catalog(t.Context(), "")
	files := append([]string{"--catalog", written(t, kube.NewCatalogFile("eastus", catalog))}, "-f", written(t, pool))
	for _, pod := range pods {
		files = append(files, "-f", written(t, pod))
	}
	var plan struct {
		Unschedulable []struct{ Pod, Message string }
	}
	if err := json.Unmarshal([]byte(nap(t, append([]string{"plan", "-o", "json"}, files...)...)), &plan); err != nil {
		t.Fatal(err)
	}
	for _, u := range plan.Unschedulable {
		name := strings.TrimPrefix(u.Pod, "default/")
		event := events[name]
		delete(events, name)
		// The event has as many parts of the message as fit.
		for _, part := range regexp.MustCompile(`; nearest: |\); `).Split(event, -1) {
			if event == "" || len(event) > longest || !strings.Contains(u.Message, part) {
				t.Errorf("%s:\nthe event says %q,\nnap plan says  %q", name, event, u.Message)
			}
		}
		why, rest, _ := strings.Cut(u.Message, " (")
		_, rest, _ = strings.Cut(rest, ")")
		said := nap(t, append([]string{"explain", "pod", u.Pod, "-v"}, files...)...)
		out := strings.Join(strings.Fields(said), " ") // it is broken into lines for the screen
		parts := []string{why + "."}
		if nearest, is := strings.CutPrefix(rest, "; nearest: "); is {
			parts = append(parts, strings.SplitN(nearest, "; ", 2)[0])
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%s: nap explain pod says\n%swithout %q", name, said, part)
			}
		}
	}
	if len(plan.Unschedulable) != len(pods) || len(events) > 0 {
		t.Errorf("nap plan explains %d of %d pods; events of others: %v", len(plan.Unschedulable), len(pods), events)
	}
}

// nap runs the command line and returns what it prints of pods which stay pending.
func nap(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(t.Context(), args, "", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 2 {
		t.Fatalf("nap %v: exit code %d, want 2: %s", args, code, errs.String())
	}
	return out.String()
}

// written writes a document to a file and returns its path.
func written(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "document.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
