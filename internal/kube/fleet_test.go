package kube

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// TestFleetsReadAsExpected turns the objects of every file under testdata/fleets
// into a question about giving machines back, and compares what it adds to the
// planning problem, as text, with the section "fleet" of the file.
func TestFleetsReadAsExpected(t *testing.T) {
	readsAsExpected(t, "fleet", func(t *testing.T, _ string, archive *txtar.Archive) string { return fleetText(t, archive) })
}

func fleetText(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	store := fleet.NewStore()
	mirror := NewMirror(store, Settings{})
	for _, f := range archive.Files {
		if !strings.HasSuffix(f.Name, ".yaml") {
			continue
		}
		found, err := Decode(bytes.NewReader(f.Data), f.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range found {
			mirror.Apply(x.Object)
		}
	}
	file, err := ReadCatalog(strings.NewReader(smallCatalog))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := file.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	in, err := store.Snapshot().Disruption(context.Background(), fixedCatalog{catalog}, fleet.DisruptionOptions{
		Options: fleet.Options{Now: time.Unix(1_700_000_000, 0)}, // 2023-11-14 22:13:20 UTC
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	describeFleet(&out, in)
	return out.String()
}

func describeFleet(out *strings.Builder, in *fleet.DisruptionInput) {
	f := in.Disruption
	for i := range f.Policies {
		p := &f.Policies[i]
		fmt.Fprintf(out, "policy of %s: %s after %s never %v static %v, allowed: Empty %d, Underutilized %d, Drifted %d\n",
			p.Pool, p.Consolidation,
			p.After, p.Never, p.Static, p.Allowed[model.DisruptEmpty], p.Allowed[model.DisruptUnderutilized], p.Allowed[model.DisruptDrifted])
	}
	for i := range f.Budgets {
		b := &f.Budgets[i]
		fmt.Fprintf(out, "budget %s allows %d blocking %v\n", b, b.Allowed, b.Blocking)
	}
	for i := range f.Movable {
		c := &f.Movable[i]
		fmt.Fprintf(out, "movable %d: %v takes %s, costs %g, budgets %v\n", i,
			c.Pods, c.Requests.Format(in.Problem.Axes), c.EvictionCost, c.Budgets)
	}
	for i := range f.Usages {
		t, n := &f.Usages[i], &in.Problem.Nodes[i]
		fmt.Fprintf(out, "\n%s policy %d\n", n.Name, t.Policy)
		line(out, "pods", fmt.Sprint(in.Movable(t.Pods)))
		for _, h := range t.DoNotDisruptPods {
			line(out, "held", h.Pod.String()+" until "+instant(h.Until))
		}
		for _, p := range t.DaemonPods {
			line(out, "daemon", fmt.Sprint(p.Pod, " budgets ", p.Budgets))
		}
		line(out, "state", fmt.Sprintf("initialized %v ready %v nominated %v do-not-disrupt %v marked %v",
			t.Initialized, t.Ready, t.Nominated, t.DoNotDisrupt, t.Disrupting))
		line(out, "times", fmt.Sprintf("created %s, initialized %s, last pod event %s",
			instant(t.Created), instant(t.InitializedAt), instant(t.LastPodEvent)))
		if t.Drift != "" {
			line(out, "drift", fmt.Sprintf("%s since %s grace period %v", t.Drift, instant(t.DriftSince), t.GracePeriod))
		}
		line(out, "expires", instant(t.ExpiresAt))
	}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("01-02 15:04:05")
}
