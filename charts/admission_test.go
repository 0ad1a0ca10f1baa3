package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// A real API server takes everything that both charts render, and its Pod Security
// admission takes the pod where it enforces the restricted standard.
func TestAPIServerAdmitsWhatChartsRender(t *testing.T) {
	l := labtest.Start(t, lab.Config{})
	apply := func(text string) {
		t.Helper()
		if err := lab.Apply(t.Context(), l.Config(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	definitions, err := command("template", "nap-crd", "nap-crd")
	if err != nil {
		t.Fatal(err)
	}
	apply(definitions)
	apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: nap-system\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n")
	text := template(t, "nap", "nap-system", slices.Concat(least(), everything()))
	apply(text)
	for _, args := range documented(t) {
		if !strings.Contains(strings.Join(args, " "), "podMonitor") { // whose definition is another project's
			rendered, err := command(args...)
			if err != nil {
				t.Fatal(err)
			}
			apply(rendered)
		}
	}

	kube := l.Client()
	pod := the[*appsv1.Deployment](t, objects(t, text)).Spec.Template
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "trial", Labels: pod.Labels}, Spec: pod.Spec}
	trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := kube.CoreV1().Pods("nap-system").Create(t.Context(), object, trial); err != nil {
		t.Errorf("the pod is not restricted enough: %v", err)
	}
	object.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	if _, err := kube.CoreV1().Pods("nap-system").Create(t.Context(), object, trial); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("the standard is not enforced: %v", err)
	}
	// Kubernetes makes nap's roles for users part of its own.
	labtest.Await(t, "role view with NodePools", func() bool {
		view, err := kube.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		return err == nil && strings.Contains(view.String(), "nodepools")
	})
}
