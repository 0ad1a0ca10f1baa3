// Package onlab runs the controllers of this checkout by hand on a lab, so that their
// processor time, memory and requests can be measured: a real control plane and a simulated
// Azure, without the chart's release.
//
//   - lab.go: the lab
//   - controller.go: a controller on it
package onlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// Programs are the executables that are measured.
type Programs struct {
	// Lab is nap-lab, Controller is nap-controller.
	Lab, Controller string
}

// Lab is a running lab without a controller.
type Lab struct {
	// Config reaches its API server as an administrator, without a limit on requests.
	Config *rest.Config
	// Azure is its simulated Azure.
	Azure *cloud.Client

	programs Programs
	dir      string
}

// Start starts a lab in dir, with flags of nap lab up besides, and applies what the
// controller of this checkout needs and the manifest.
func Start(ctx context.Context, programs Programs, dir string, manifest []byte, flags ...string) (*Lab, error) {
	args := append([]string{"up", "--detach", "--engine", cloud.NoController, "--dir", dir}, flags...)
	if out, err := exec.CommandContext(ctx, programs.Lab, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("start a lab: %w: %s", err, bytes.TrimSpace(out))
	}
	l := &Lab{programs: programs, dir: dir}
	if err := l.connect(ctx, manifest); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// connect reads where the lab's API server and its Azure are, and installs what a controller
// needs.
func (l *Lab) connect(ctx context.Context, manifest []byte) error {
	state, err := lab.Inspect(l.dir)
	if err != nil {
		return err
	}
	if l.Config, err = clientcmd.BuildConfigFromFlags("", state.Kubeconfig); err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	l.Config.QPS = -1
	if l.Azure, err = cloud.Open(l.dir); err != nil {
		return err
	}
	return l.install(ctx, manifest)
}

// install brings the definitions and permissions that the controller of this checkout
// needs, and the manifest.
func (l *Lab) install(ctx context.Context, manifest []byte) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	var manifests [][]byte
	for _, d := range definitions {
		text, err := yaml.Marshal(d)
		if err != nil {
			return fmt.Errorf("write custom resource definition %s: %w", d.Name, err)
		}
		manifests = append(manifests, text)
	}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nap"}
	roles, err := rbac.Manifests(metav1.NamespaceSystem, user, rbac.LeaderElection, rbac.BootstrapTokens)
	if err != nil {
		return err
	}
	for _, text := range append(manifests, roles, manifest) {
		if err := lab.Apply(ctx, l.Config, text); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the lab.
func (l *Lab) Stop() error {
	if l.Azure != nil {
		l.Azure.Close()
	}
	_, err := lab.Down(context.Background(), l.dir)
	return err
}
