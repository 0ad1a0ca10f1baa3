package cloud_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/systemnode"
)

// controllerPod is the one pod of the release.
func controllerPod(t *testing.T, l *labtest.Lab) *corev1.Pod {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods("nap-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods of the release, want 1: %v", len(pods.Items), err)
	}
	return &pods.Items[0]
}

// expectChart states that the controller runs as the chart says: on the tainted system
// node, which is bound to by the scheduler, with the chart's environment and what is
// listed as different, reachable by the API server.
func expectChart(t *testing.T, l *labtest.Lab) {
	t.Helper()
	pod := controllerPod(t, l)
	node, err := l.Client().CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["kubernetes.azure.com/mode"] != "system" || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "CriticalAddonsOnly" {
		t.Errorf("the controller runs on node %s with labels %v and taints %v", node.Name, node.Labels, node.Spec.Taints)
	}
	expectEnvironment(t, l, pod)

	core := l.Client().CoreV1()
	log, err := core.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), "msg=starting") {
		t.Errorf("kubectl logs gives %.200q, %v", log, err)
	}
	health, err := core.RESTClient().Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name + ":8081").SubResource("proxy").
		Suffix("healthz").DoRaw(t.Context())
	if err != nil || string(health) != "ok" {
		t.Errorf("the pod's health through the API server is %q, %v", health, err)
	}
	expectPortForward(t, l, pod)
}

// expectPortForward asks for the controller's health twice over one connection of kubectl
// port-forward, and is refused a port that the pod does not declare, which ends it.
func expectPortForward(t *testing.T, l *labtest.Lab, pod *corev1.Pod) {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	url := l.Client().CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forwarder, err := portforward.New(dialer, []string{"0:8081", "0:4711"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		t.Errorf("kubectl port-forward: %v", err)
		return
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(port uint16) (string, error) {
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	for range 2 {
		if text, err := get(ports[0].Local); err != nil || text != "ok" {
			t.Errorf("the health by kubectl port-forward is %.200q, %v", text, err)
		}
	}
	if text, err := get(ports[1].Local); err == nil {
		t.Errorf("a port that the pod does not declare answers %.200q", text)
	}
	close(stop)
	if err := <-ended; err != nil && !errors.Is(err, portforward.ErrLostConnectionToPod) {
		t.Errorf("kubectl port-forward ends with %v", err)
	}
}

// expectEnvironment compares the environment of the controller's process with the pod's.
func expectEnvironment(t *testing.T, l *labtest.Lab, pod *corev1.Pod) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(l.Part(cloud.Controller).Process.PID) + "/environ")
	if os.IsNotExist(err) {
		t.Log("not compared: this system does not show the environment of processes")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]corev1.EnvVar{}
	for _, e := range pod.Spec.Containers[0].Env {
		stated[e.Name] = e
	}
	listed := systemnode.Substitutions(systemnode.Program{Ports: cloud.ControllerPorts()})
	var mounts []string
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, m.MountPath+"/")
	}
	given := map[string]bool{}
	for variable := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		given[name] = true
		e, isStated := stated[name]
		_, isListed := listed[name]
		below := slices.ContainsFunc(mounts, func(m string) bool { return strings.HasPrefix(e.Value, m) })
		switch {
		case isListed:
		case !isStated:
			t.Errorf("the process has %s, which is neither the pod's nor a listed substitution", variable)
		case e.ValueFrom == nil && below && (value == e.Value || !strings.HasSuffix(value, e.Value[strings.LastIndex(e.Value, "/"):])):
			t.Errorf("the process has %s, and the pod mounts %s", variable, e.Value)
		case e.ValueFrom == nil && !below && value != e.Value:
			t.Errorf("the process has %s, and the pod %s", variable, e.Value)
		}
	}
	for name := range stated {
		if _, isListed := listed[name]; !given[name] && !isListed {
			t.Errorf("the process lacks the pod's %s", name)
		}
	}
	for name := range listed {
		if !given[name] {
			t.Errorf("%s is a listed substitution, and the process does not have it", name)
		}
	}
}

func TestWrongVariablesAreRefusedBeforeTheStart(t *testing.T) {
	for name, value := range map[string]string{"NAP_TYPO": "1", "FEATURE_GATES": "Nonsense=true", "MAX_NODES": "many"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			want := map[string]string{"NAP_TYPO": "NAP_TYPO", "FEATURE_GATES": "nonsense", "MAX_NODES": "maxNodes"}[name]
			err := cloud.Check(t.Context(), labtest.Binary(t), cloud.Options{}, "nap")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: %v, want an error that names %s", name, value, err, want)
			}
			if err := cloud.Check(t.Context(), labtest.Binary(t), cloud.Options{}, cloud.NoController); err != nil {
				t.Errorf("without a controller: %v", err)
			}
		})
	}
	if err := cloud.Check(t.Context(), labtest.Binary(t), cloud.Options{Release: "karpenter", Replicas: 2}, "karpenter"); err != nil {
		t.Error(err)
	}
}
