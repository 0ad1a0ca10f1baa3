package conformance

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// lab is the cluster of a run. It has no nodes but the tainted one on which nap runs, as
// the suites want, and no workload. nap is installed by its chart with the names that they
// look for: Deployment, lease and labels of Karpenter in kube-system, and two replicas, for
// one alone acts without a lease.
type lab struct {
	workspace *Workspace
	options   Selection
	// module is the folder of Karpenter's module.
	module  string
	running bool
	// speed is how many times faster than the real one its simulated Azure is.
	speed float64
	// suite is the one that is run, program the path of what it needs beside the lab, or
	// empty; beside is that program while it runs.
	suite   Suite
	program string
	beside  *beside
}

func (l *lab) dir() string { return filepath.Join(l.workspace.Dir, "lab-"+l.options.Engine) }

func (l *lab) kubeconfig() string { return filepath.Join(l.dir(), "kubeconfig") }

// start starts a new lab if none of this run is there whose simulated Azure has the speed.
// One that an earlier run has left is ended.
func (l *lab) start(ctx context.Context, speed float64) error {
	if l.running && l.speed == speed {
		return l.accompany(ctx)
	}
	l.discard()
	env := []string{
		"FEATURE_GATES=" + l.options.Gates,
		// Without constraints, this lets nap read Services, which it must for those that
		// specs set.
		`SCHEDULER_CONFIG={"podTopologySpread":{}}`,
	}
	err := run(ctx, l.workspace.Dir, env, os.Stderr, l.workspace.Lab, "up", "--detach", "--dir", l.dir(), "--nodes", "0",
		"--release", "karpenter", "--replicas", "2", "--scheduler-profiles", filepath.Join(l.module, schedulerProfiles),
		"--engine", l.options.Engine, "--speed", strconv.FormatFloat(speed, 'g', -1, 64))
	if err != nil {
		return fmt.Errorf("start a lab in %s: %w", l.dir(), err)
	}
	l.running, l.speed = true, speed
	if err := l.showScheduler(ctx); err != nil {
		return err
	}
	return l.accompany(ctx)
}

// accompany runs what the suite needs beside the lab, and nothing else.
func (l *lab) accompany(ctx context.Context) (err error) {
	switch {
	case l.program == "":
		l.beside.stop()
		l.beside = nil
	case l.beside == nil:
		l.beside, err = l.workspace.runBeside(ctx, l.suite, l.program, l.kubeconfig())
	case l.beside.over():
		return fmt.Errorf("%s has ended, without which suite %s proves nothing; it says why in %s.log", l.program, l.suite.Name, l.program)
	}
	return err
}

const (
	// schedulerProfiles is the file in Karpenter's module with the profiles that the
	// scheduler of the suites' cluster has, and schedulerConfig where that cluster has it.
	schedulerProfiles = "test/suites/regression/testdata/kube-scheduler-config.yaml"
	schedulerConfig   = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml"
)

// showScheduler makes the pod by which specs recognize that the scheduler has these
// profiles: clusters that run their control plane on a node of their own show it.
func (l *lab) showScheduler(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the lab: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("reach the lab: %w", err)
	}
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("find the only node of the lab: %w", err)
	}
	if len(nodes.Items) != 1 {
		return fmt.Errorf("the lab has %d nodes, must have the one that nap runs on", len(nodes.Items))
	}
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-scheduler", Namespace: metav1.NamespaceSystem, Labels: map[string]string{"component": "kube-scheduler"},
		},
		Spec: corev1.PodSpec{
			NodeName: nodes.Items[0].Name, AutomountServiceAccountToken: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "kube-scheduler", Image: "kube-scheduler", Command: []string{"kube-scheduler", "--config=" + schedulerConfig},
			}},
		},
	}
	if _, err := kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("show the scheduler as a pod: %w", err)
	}
	return nil
}

// stop ends the lab that this run has started, if any. Its folder stays, to be looked at.
func (l *lab) stop() {
	if l.running {
		l.down()
	}
}

// down ends whatever lab runs in the folder. One that does not run any more is as good.
func (l *lab) down() {
	l.beside.stop()
	l.beside = nil
	_ = run(context.Background(), l.workspace.Dir, nil, io.Discard, l.workspace.Lab, "down", "--dir", l.dir())
	l.running = false
}

// discard ends the lab and keeps its folder under another name, until the next one.
func (l *lab) discard() {
	l.down()
	kept := l.dir() + ".last"
	_ = os.RemoveAll(kept)
	_ = os.Rename(l.dir(), kept)
}
