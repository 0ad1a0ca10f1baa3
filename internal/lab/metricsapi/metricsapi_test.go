package metricsapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func pod(name string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main"}, {Name: "beside"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status},
		}},
	}
}

// ask asks for a path and reads the answer as a list, and its status.
func ask(t *testing.T, h http.Handler, path string) (measuredList, int) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/"+version+path, nil))
	var out measuredList
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out, w.Code
}

// TestLoadIsSharedByPodsThatWork: more pods bring the use of each down, those that do not
// serve have none, and a node uses what its pods use.
func TestLoadIsSharedByPodsThatWork(t *testing.T) {
	other := pod("other", true)
	other.Labels = nil
	client := fake.NewClientset(pod("a", true), pod("b", true), pod("starting", false), other,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	h := (&answers{client: client, now: time.Now}).handler()
	for _, text := range []string{"app=web cpu=7", "app=web cpu=3 memory=4Gi", "app cpu=1"} {
		if err := Set(t.Context(), client, "default", text); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := ask(t, h, "/namespaces/default/pods")
	cpu := map[string]int64{}
	for _, m := range got.Items {
		cpu[m.Name] = m.Containers[0].Usage.Cpu().MilliValue()
		if rest := m.Containers[1].Usage.Cpu().MilliValue(); rest != 0 {
			t.Errorf("the second container of %s uses %d", m.Name, rest)
		}
	}
	if len(cpu) != 3 || cpu["a"] != 2000 || cpu["b"] != 2000 || cpu["other"] != 0 {
		t.Errorf("pods use %v thousandths", cpu)
	}
	if got, _ := ask(t, h, "/pods?labelSelector=app%3Dweb"); len(got.Items) != 2 || got.Items[0].Containers[0].Usage.Memory().Value() != 2<<30 {
		t.Errorf("by label: %+v", got.Items)
	}
	nodes, _ := ask(t, h, "/nodes")
	if len(nodes.Items) != 1 || nodes.Items[0].Usage.Cpu().MilliValue() != 4000 {
		t.Errorf("nodes use %+v", nodes.Items)
	}
	if _, code := ask(t, h, "/namespaces/other/pods/a"); code != http.StatusNotFound {
		t.Errorf("a pod that is not there: %d", code)
	}
}

func TestWrongLoadsAreRefusedByWord(t *testing.T) {
	for text, want := range map[string]string{
		"app=web":            "say SELECTOR cpu=AMOUNT",
		"app=web disk=1":     `got "disk=1", allowed: cpu=AMOUNT, memory=AMOUNT`,
		"app=web cpu=many":   `cpu: got "many"`,
		"app=web cpu=-1":     `cpu: got "-1"`,
		"app==web=1 cpu=one": "load",
	} {
		if _, err := ParseLoad(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOnlyTheAPIServerIsAnswered: without its certificate nothing is told.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	w := httptest.NewRecorder()
	proxied(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/"+version, nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
}
