package helmrelease

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

// Installer installs releases in one namespace.
type Installer struct {
	store   store
	applier *manifest.Applier
}

// fieldManager owns the fields of applied objects: the name of Helm's program, which takes
// them over without a conflict.
const fieldManager = "helm"

// New makes an installer for a namespace; now reads the clock.
func New(cfg *rest.Config, namespace string, now func() time.Time) (*Installer, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	applier, err := manifest.NewApplier(cfg, fieldManager)
	if err != nil {
		return nil, err
	}
	return &Installer{store: store{kube: client, namespace: namespace, now: now}, applier: applier}, nil
}

// Outcome is what an installation came to.
type Outcome string

// The outcomes.
const (
	Installed Outcome = "installed"
	Upgraded  Outcome = "upgraded"
	// Unchanged says that the release was there as it should be, Restored that objects of it were
	// missing or had been changed by hand.
	Unchanged Outcome = "unchanged"
	Restored  Outcome = "restored"
)

// Current is the newest revision of a release; nil where there is none.
func (i *Installer) Current(ctx context.Context, name string) (*releasev1.Release, error) {
	all, err := i.store.history(ctx, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return slices.MaxFunc(all, func(a, b *releasev1.Release) int { return cmp.Compare(a.Version, b.Version) }), nil
}

// pendingBy is how the description of a pending revision begins that this package has
// written.
const pendingBy = "nap enable"

// Install makes the cluster have a release, whose namespace is the installer's. It
// finishes what an earlier Install has begun, and refuses to touch objects that belong to
// another owner, before it writes anything.
func (i *Installer) Install(ctx context.Context, want charts.Release) (Outcome, error) {
	rendered, err := want.Render()
	if err != nil {
		return "", err
	}
	return i.install(ctx, want, rendered)
}

// Check refuses what Install would refuse, by a [RefusedError], and writes nothing.
func (i *Installer) Check(ctx context.Context, want charts.Release) error {
	rendered, err := want.Render()
	if err != nil {
		return err
	}
	_, _, err = i.prepare(ctx, want, rendered)
	return err
}

// install is Install of what was rendered.
func (i *Installer) install(ctx context.Context, want charts.Release, rendered *charts.Rendered) (Outcome, error) {
	objects, last, err := i.prepare(ctx, want, rendered)
	if err != nil {
		return "", err
	}
	if err := i.keepScaled(ctx, objects); err != nil {
		return "", err
	}
	next, outcome := i.next(want, rendered, last)
	if outcome == Unchanged {
		return i.restore(ctx, objects)
	}
	if err := i.store.put(ctx, next); err != nil {
		return "", err
	}
	if err := i.applier.Apply(ctx, objects); err != nil {
		return "", err
	}
	return outcome, i.finish(ctx, next, objects)
}

// prepare gives the objects of a release, and its newest revision, once it is clear that
// nothing else has a hand in them.
func (i *Installer) prepare(ctx context.Context, want charts.Release, rendered *charts.Rendered) (
	[]*unstructured.Unstructured, *releasev1.Release, error,
) {
	objects, err := manifest.Parse([]byte(rendered.Manifest))
	if err != nil {
		return nil, nil, fmt.Errorf("chart %s: %w", want.Chart, err)
	}
	for _, o := range objects {
		own(o, want.Name, want.Namespace)
	}
	last, err := i.Current(ctx, want.Name)
	if err != nil {
		return nil, nil, err
	}
	if last != nil && last.Info.Status.IsPending() && !byNap(last) {
		return nil, nil, &RefusedError{Why: fmt.Sprintf("release %s in namespace %s is %s since %s: helm is at work on it, or was stopped; "+
			"wait for it, or: helm rollback %[1]s --namespace %[2]s",
			want.Name, want.Namespace, last.Info.Status, last.Info.LastDeployed.UTC().Format(time.RFC3339))}
	}
	if err := i.checkDeleted(ctx, objects); err != nil {
		return nil, nil, err
	}
	return objects, last, i.checkOwners(ctx, objects, want, last)
}

// next is the revision to be made.
func (i *Installer) next(want charts.Release, rendered *charts.Rendered, last *releasev1.Release) (*releasev1.Release, Outcome) {
	now := i.store.now()
	next := &releasev1.Release{
		Name: want.Name, Namespace: want.Namespace, Version: 1, Chart: rendered.Chart, Config: rendered.Values, Manifest: rendered.Manifest,
		ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
		Info: &releasev1.Info{
			FirstDeployed: now, LastDeployed: now, Notes: rendered.Notes, Status: common.StatusPendingInstall,
			Description: pendingBy + " is at work",
		},
	}
	if last == nil {
		return next, Installed
	}
	same := last.Manifest == next.Manifest && sameValues(last.Config, next.Config) && sameChart(last, next)
	if same && last.Info.Status == common.StatusDeployed {
		return last, Unchanged
	}
	next.Version, next.Info.FirstDeployed = last.Version, last.Info.FirstDeployed
	if !same || !last.Info.Status.IsPending() {
		// A pending revision with another manifest stays until what it alone has is removed.
		next.Version++
	}
	if last.Info.Status == common.StatusPendingInstall {
		return next, Installed
	}
	next.Info.Status = common.StatusPendingUpgrade
	return next, Upgraded
}

func sameChart(a, b *releasev1.Release) bool {
	return a.Chart != nil && a.Chart.Metadata != nil && b.Chart.Metadata != nil && a.Chart.Metadata.Version == b.Chart.Metadata.Version
}

// sameValues compares values as they are written down.
func sameValues(a, b map[string]any) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && (string(one) == string(two) || len(a)+len(b) == 0)
}

func byNap(r *releasev1.Release) bool {
	return strings.HasPrefix(r.Info.Description, pendingBy)
}

// finish removes what only earlier revisions have, and writes down that the revision is
// the one in force.
func (i *Installer) finish(ctx context.Context, r *releasev1.Release, objects []*unstructured.Unstructured) error {
	all, err := i.store.history(ctx, r.Name)
	if err != nil {
		return err
	}
	for _, before := range all {
		if before.Version >= r.Version || before.Info.Status == common.StatusSuperseded || before.Info.Status == common.StatusUninstalled {
			continue
		}
		had, err := manifest.Parse([]byte(before.Manifest))
		if err != nil {
			return err
		}
		if err := i.applier.Remove(ctx, unkept(manifest.Others(had, objects))); err != nil {
			return err
		}
		before.Info.Status = common.StatusSuperseded
		if err := i.store.put(ctx, before); err != nil {
			return err
		}
	}
	first := r.Info.Status == common.StatusPendingInstall
	r.Info.Status, r.Info.Description = common.StatusDeployed, "Install complete"
	if !first {
		r.Info.Description = "Upgrade complete"
	}
	return i.store.put(ctx, r)
}

// restore applies the objects of a release that is in force, of which some may be missing, or
// have been changed by hand.
func (i *Installer) restore(ctx context.Context, objects []*unstructured.Unstructured) (Outcome, error) {
	outcome := Unchanged
	for _, o := range objects {
		changed, err := i.applier.Restore(ctx, o)
		if err != nil {
			return "", err
		}
		if changed {
			outcome = Restored
		}
	}
	return outcome, nil
}

// Uninstall removes a release with its history. What its chart says to keep stays, as
// with Helm. It reports whether there was one.
func (i *Installer) Uninstall(ctx context.Context, name string) (bool, error) {
	all, err := i.store.history(ctx, name)
	if err != nil || len(all) == 0 {
		return false, err
	}
	slices.SortFunc(all, func(a, b *releasev1.Release) int { return cmp.Compare(a.Version, b.Version) })
	for _, r := range slices.Backward(all) {
		objects, err := manifest.Parse([]byte(r.Manifest))
		if err != nil {
			return true, err
		}
		if err := i.applier.Remove(ctx, unkept(objects)); err != nil {
			return true, err
		}
	}
	// The newest revision goes last, so that a stopped run finds it again.
	for _, r := range all {
		if err := i.store.remove(ctx, r); err != nil {
			return true, err
		}
	}
	return true, nil
}

// unkept are the objects without those that stay when their release goes.
func unkept(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
	})
}
