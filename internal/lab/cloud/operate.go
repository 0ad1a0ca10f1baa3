package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// PublishImages adds a version of every node image, as a release of AKS does.
func (c *Client) PublishImages(ctx context.Context, version string) error {
	var published struct{}
	return c.do(ctx, http.MethodPost, "images", map[string]string{"version": version}, &published)
}

// SetWindow sets a maintenance window of the cluster, one of scenario.Windows, to one of
// scenario.WindowStates.
func (c *Client) SetWindow(ctx context.Context, window, state string) error {
	name := map[string]string{
		scenario.WindowNodeImages: maintenance.NodeImages, scenario.WindowKubernetes: maintenance.Kubernetes,
	}[window]
	if name == "" {
		return notAllowed("window", window, scenario.Windows())
	}
	if !slices.Contains(scenario.WindowStates(), state) {
		return notAllowed("window "+window, state, scenario.WindowStates())
	}
	body := map[string]any{"name": name, "open": state == scenario.WindowOpen}
	if state == scenario.WindowNone {
		body["open"] = nil
	}
	var set struct{}
	return c.do(ctx, http.MethodPost, "windows", body, &set)
}

// Upgrade raises the Kubernetes version of the control plane of the lab in dir by one minor
// version, and has the managed cluster say so. It returns what the version is then.
func Upgrade(ctx context.Context, dir, version string) (string, error) {
	served, err := lab.Upgrade(ctx, dir, version)
	if err != nil {
		return "", err
	}
	azure, err := Open(dir)
	if err != nil {
		return "", err
	}
	defer azure.Close()
	var set struct{}
	return served, azure.do(ctx, http.MethodPost, "kubernetes", map[string]string{"version": served}, &set)
}

// applied is a release as it was applied: the chart with its values, and what its pods
// mount beside.
type applied struct {
	Chart   lab.Chart `json:"chart"`
	Mounted string    `json:"mounted"`
	Binary  string    `json:"binary"` // the program that has the chart
}

// The files with the release as it is, and as it was before the last upgrade.
const (
	releaseFile = "release.json"
	beforeFile  = "release-before.json"
)

// note keeps a release as it was applied. Of the variables those are kept that the chart has
// taken: the others are this process's own matter.
func (r *release) note(env lab.Environment, chart lab.Chart, rendered, mounted []byte) error {
	chart.Variables = slices.DeleteFunc(slices.Clone(chart.Variables), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !strings.Contains(string(rendered), "name: "+name+"\n")
	})
	return applied{chart, string(mounted), env.Binary}.write(filepath.Join(env.Dir, releaseFile))
}

func (a applied) write(file string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("the release: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("the release: %w", err)
	}
	return nil
}

func readApplied(file string) (a applied, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// UpgradeNap applies the chart of the lab in dir again with settings of the controller
// changed, each as NAME=VALUE by its variable, and returns when its pods are replaced.
func UpgradeNap(ctx context.Context, dir string, settings []string) error {
	now, err := readApplied(filepath.Join(dir, releaseFile))
	if err != nil {
		return fmt.Errorf("the lab in %s has no release to upgrade: %w", dir, err)
	}
	next := now
	next.Chart.Variables = append(slices.Clone(now.Chart.Variables), settings...)
	if err := next.apply(ctx, dir); err != nil {
		return err
	}
	if err := now.write(filepath.Join(dir, beforeFile)); err != nil {
		return err
	}
	return next.rolledOut(ctx, dir)
}

// RollbackNap applies the release as it was before UpgradeNap, and returns when its pods are
// replaced.
func RollbackNap(ctx context.Context, dir string) error {
	before, err := readApplied(filepath.Join(dir, beforeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the release of the lab in %s was not upgraded: there is nothing to go back to", dir)
	}
	if err != nil {
		return err
	}
	if err := before.apply(ctx, dir); err != nil {
		return err
	}
	return before.rolledOut(ctx, dir)
}

// apply renders the chart and applies it as the lab does at its start.
func (a applied) apply(ctx context.Context, dir string) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	a.Chart.Kubernetes = state.Served // which may have been upgraded since
	rendered, err := a.Chart.Render(ctx, a.Binary)
	if err != nil {
		return err
	}
	admin, err := lab.Environment{Kubeconfig: state.Kubeconfig}.AdminConfig()
	if err != nil {
		return err
	}
	release := append([]byte(a.Mounted+"\n---\n"), rendered...)
	before, err := os.ReadFile(installed(dir))
	if err != nil {
		return fmt.Errorf("the objects of the release before: %w", err)
	}
	if err := lab.RemoveOthers(ctx, admin, before, release); err != nil {
		return err
	}
	if err := os.WriteFile(installed(dir), release, 0o600); err != nil {
		return fmt.Errorf("the objects of the release: %w", err)
	}
	if err := lab.Apply(ctx, admin, release); err != nil {
		return err
	}
	return a.write(filepath.Join(dir, releaseFile))
}

// rolloutPatience is how long the replicas of a release may take to be replaced.
const rolloutPatience = 3 * time.Minute

// rolledOut waits until all replicas are of this release.
func (a applied) rolledOut(ctx context.Context, dir string) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	admin, err := lab.Environment{Kubeconfig: state.Kubeconfig}.AdminConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rolloutPatience)
	defer cancel()
	for {
		d, err := client.AppsV1().Deployments(a.Chart.Namespace).Get(ctx, a.Chart.Name, metav1.GetOptions{})
		if err == nil {
			err = available(d)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the rollout of nap does not end: %w", err)
		}
	}
}

// operator does to a lab what stories ask for. It implements scenario.Lab.
type operator struct {
	dir        string
	kubernetes *rest.Config
	azure      *Client
}

// PublishImages implements scenario.Lab.
func (o *operator) PublishImages(ctx context.Context, version string) error {
	return o.azure.PublishImages(ctx, version)
}

// SetWindow implements scenario.Lab.
func (o *operator) SetWindow(ctx context.Context, window, state string) error {
	return o.azure.SetWindow(ctx, window, state)
}

// UpgradeKubernetes implements scenario.Lab.
func (o *operator) UpgradeKubernetes(ctx context.Context, version string) (string, error) {
	return Upgrade(ctx, o.dir, version)
}

// UpgradeNap implements scenario.Lab.
func (o *operator) UpgradeNap(ctx context.Context, settings []string) error {
	return UpgradeNap(ctx, o.dir, settings)
}

// RollbackNap implements scenario.Lab.
func (o *operator) RollbackNap(ctx context.Context) error { return RollbackNap(ctx, o.dir) }
