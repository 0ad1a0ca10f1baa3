package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// Play plays a scenario in the lab that runs in dir, and tells the story to out.
func Play(ctx context.Context, dir string, story *scenario.Scenario, out io.Writer) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	if !state.Supervisor.Alive() {
		return fmt.Errorf("the lab in %s is not running (%s); start it with: nap lab up%s", dir, state.Phase, lab.DirFlag(dir))
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	config.QPS = -1
	azure, err := Open(state.Dir)
	if err != nil {
		return err
	}
	defer azure.Close()
	return scenario.Run(ctx, story, scenario.Stage{
		Kubernetes: config,
		Apply:      func(ctx context.Context, manifest []byte) error { return lab.Apply(ctx, config, manifest) },
		Azure:      azure,
		Lab:        &operator{dir: state.Dir, kubernetes: config, azure: azure},
		Out:        out,
	})
}

// Leader is the name by which a story kills the replica of the controller that holds the
// lease.
const Leader = "leader"

// killPatience is how long a part that is being restarted may take to be there
// to be killed.
const killPatience = time.Minute

// Kill implements scenario.Lab.
func (o *operator) Kill(ctx context.Context, part string) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	for {
		err := o.kill(ctx, part)
		if err == nil || !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s did not come back to be killed again: %w", part, err)
		}
	}
}

func (o *operator) kill(ctx context.Context, part string) error {
	if part == Leader {
		pod, err := leader(ctx, o.kubernetes)
		if err != nil {
			return err
		}
		state, err := lab.Inspect(o.dir)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(state.Parts, func(p lab.PartState) bool { return path.Base(p.Pod) == pod })
		if i < 0 {
			return fmt.Errorf("the leader, pod %s, is between two lives: %w", pod, os.ErrProcessDone)
		}
		part = state.Parts[i].Name
	}
	return lab.Kill(o.dir, part)
}

// leader is the name of the pod that holds the controller's lease.
func leader(ctx context.Context, config *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	leases, err := client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("the lease of the controller: %w", err)
	}
	for _, l := range leases.Items {
		if l.Name == leaseName && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" {
			pod, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
			return pod, nil
		}
	}
	return "", fmt.Errorf("no replica of the controller holds lease %s; start the lab with two: nap lab up --replicas 2", leaseName)
}

// leaseName is the controller's lease where no setting says otherwise.
const leaseName = "karpenter-leader-election"
