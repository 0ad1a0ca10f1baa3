package helmrelease

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

const namespace = "nap-system"

// nap is the release of the chart nap, with its admission policies for NodePools or without.
func nap(policies bool) charts.Release {
	return charts.Release{Chart: "nap", Name: "nap", Namespace: namespace, Kubernetes: "v1.37.1", Values: map[string]any{
		"image":            map[string]any{"repository": "registry.example/nap", "tag": "v1"},
		"settings":         map[string]any{"clusterName": "c", "armResourceGroup": "g", "azureSubscriptionId": "00000000-0000-0000-0000-000000000001"},
		"workloadIdentity": map[string]any{"clientId": "client"}, "admission": map[string]any{"nodePools": policies},
	}}
}

// rendered is what the chart comes to with the policies and without: some of its objects,
// and of the chart itself its description alone, since each is written many times.
type rendered map[bool]*charts.Rendered

// kept are the objects that are enough.
var kept = regexp.MustCompile(`(?m)^kind: (ServiceAccount|Deployment|NetworkPolicy|Service)$|^  name: nap-nodepool`)

func render(t *testing.T) rendered {
	t.Helper()
	out := rendered{}
	for _, policies := range []bool{true, false} {
		release := nap(policies)
		r, err := release.Render()
		if err != nil {
			t.Fatal(err)
		}
		var some []string
		for object := range strings.SplitSeq(r.Manifest, "\n---\n") {
			if kept.MatchString(object) {
				some = append(some, object)
			}
		}
		r.Manifest, r.Chart = strings.Join(some, "\n---\n"), &chart.Chart{Metadata: r.Chart.Metadata}
		out[policies] = r
	}
	return out
}

func (r rendered) objects(t *testing.T, policies bool) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(r[policies].Manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// names are objects as "Kind name".
func names(objects iter.Seq[*unstructured.Unstructured]) []string {
	var out []string
	for o := range objects {
		if o.GetKind() != "Secret" || !strings.HasPrefix(o.GetName(), "sh.helm.") {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// installer is that of a new process, which is killed at a write unless that is 0.
func (c *cluster) installer(t *testing.T, killAt int) *Installer {
	t.Helper()
	c.writes, c.killAt = 0, killAt
	i, err := New(c.config(), namespace, func() time.Time { return time.Unix(1_700_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// sound states that a release is as Helm wants it: the newest revision alone is in force, and
// the cluster has its objects, all of them owned by it, and no others.
func (c *cluster) sound(t *testing.T, when string, i *Installer, r rendered, policies bool) {
	t.Helper()
	want := nap(policies)
	all, err := i.store.history(t.Context(), want.Name)
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: history %v, %v", when, all, err)
	}
	slices.SortFunc(all, func(a, b *releasev1.Release) int { return a.Version - b.Version })
	for n, r := range all {
		status := common.StatusSuperseded
		if n == len(all)-1 {
			status = common.StatusDeployed
		}
		if r.Info.Status != status {
			t.Errorf("%s: revision %d of %d is %s, want %s", when, r.Version, len(all), r.Info.Status, status)
		}
	}
	if diff := cmp.Diff(names(slices.Values(r.objects(t, policies))), names(maps.Values(c.objects))); diff != "" {
		t.Errorf("%s: the cluster's objects (-want +got):\n%s", when, diff)
	}
	for path, o := range c.objects {
		if whose := owner(o, want.Name, want.Namespace); whose != "" && o.GetLabels()["owner"] != "helm" {
			t.Errorf("%s: %s %s", when, path, whose)
		}
	}
}

// TestKilledInstallIsFinishedByTheNext: a process that installs, or upgrades, is killed at
// each of its writes. The next one, with the same values or with others, leaves a release
// that Helm takes for its own and no object of the one that was killed.
func TestKilledInstallIsFinishedByTheNext(t *testing.T) {
	yes, no, r := true, false, render(t)
	for name, c := range map[string]struct {
		before       *bool // the release that was there
		killed, next bool
	}{
		"an installation":                     {nil, true, true},
		"an installation, then other values":  {nil, true, false},
		"an upgrade":                          {&no, true, true},
		"an upgrade that is taken back":       {&no, true, false},
		"an upgrade that removes":             {&yes, false, false},
		"an upgrade that removes, taken back": {&yes, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			install := func(cluster *cluster, killAt int, policies bool) (*Installer, error) {
				i := cluster.installer(t, killAt)
				_, err := i.install(t.Context(), nap(policies), r[policies])
				return i, err
			}
			begin := func() *cluster {
				cluster := newCluster(t, r.objects(t, true)...)
				if c.before != nil {
					if _, err := install(cluster, 0, *c.before); err != nil {
						t.Fatal(err)
					}
				}
				return cluster
			}
			trial := begin() // how many writes there are to be killed at
			if _, err := install(trial, 0, c.killed); err != nil || trial.writes < 6 {
				t.Fatalf("%d writes, %v", trial.writes, err)
			}
			for kill := 1; kill <= trial.writes; kill++ {
				cluster := begin()
				if _, err := install(cluster, kill, c.killed); err == nil {
					t.Fatalf("killed at write %d of %d: no error", kill, trial.writes)
				}
				next, err := install(cluster, 0, c.next)
				if err != nil {
					t.Fatalf("after a kill at write %d: %v", kill, err)
				}
				cluster.sound(t, fmt.Sprintf("after a kill at write %d of %d", kill, trial.writes), next, r, c.next)
			}
		})
	}
}

// TestKilledUninstallIsFinishedByTheNext: the next one leaves nothing, and the next
// installation leaves the whole release.
func TestKilledUninstallIsFinishedByTheNext(t *testing.T) {
	r := render(t)
	begin := func() *cluster {
		cluster := newCluster(t, r.objects(t, true)...)
		for _, policies := range []bool{true, false} {
			if _, err := cluster.installer(t, 0).install(t.Context(), nap(policies), r[policies]); err != nil {
				t.Fatal(err)
			}
		}
		return cluster
	}
	trial := begin()
	if _, err := trial.installer(t, 0).Uninstall(t.Context(), "nap"); err != nil || len(trial.objects) > 0 {
		t.Fatalf("%d objects stay, %v", len(trial.objects), err)
	}
	for kill := 1; kill <= trial.writes; kill++ {
		for _, again := range []bool{false, true} {
			cluster := begin()
			if _, err := cluster.installer(t, kill).Uninstall(t.Context(), "nap"); err == nil {
				t.Fatalf("killed at write %d of %d: no error", kill, trial.writes)
			}
			next := cluster.installer(t, 0)
			if !again {
				if _, err := next.Uninstall(t.Context(), "nap"); err != nil || len(cluster.objects) > 0 {
					t.Errorf("after a kill at write %d: %d objects stay, %v", kill, len(cluster.objects), err)
				}
				continue
			}
			if _, err := next.install(t.Context(), nap(false), r[false]); err != nil {
				t.Fatalf("after a kill at write %d: %v", kill, err)
			}
			cluster.sound(t, fmt.Sprintf("installed after a kill at write %d", kill), next, r, false)
		}
	}
}
