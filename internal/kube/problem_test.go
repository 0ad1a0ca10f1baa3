package kube

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

var rewrite = flag.Bool("rewrite", false, "write the problems that are found into testdata/problems; read the diff")

// TestProblemsReadAsExpected turns the objects of every file under
// testdata/problems into a planning problem and compares it, as text, with the
// section "problem" of the file. A section "catalog.json" replaces the small
// default catalogue; a file whose name contains "live" is read as a live cluster.
func TestProblemsReadAsExpected(t *testing.T) {
	readsAsExpected(t, "problem", func(t *testing.T, name string, archive *txtar.Archive) string {
		return problemText(t, archive, strings.Contains(name, "live"))
	})
}

// readsAsExpected compares what text makes of every file under testdata/SECTIONs
// with the section of the file, or writes it there.
func readsAsExpected(t *testing.T, section string, text func(*testing.T, string, *txtar.Archive) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + section + "s/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, name, archive)
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == section })
			if i < 0 {
				archive.Files = append(archive.Files, txtar.File{Name: section})
				i = len(archive.Files) - 1
			}
			want := string(archive.Files[i].Data)
			if *rewrite && got != want {
				archive.Files[i].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", section, diff)
			}
		})
	}
}

func problemText(t *testing.T, archive *txtar.Archive, live bool) string {
	t.Helper()
	var manifests []Manifest
	catalogJSON := smallCatalog
	var out strings.Builder
	for _, f := range archive.Files {
		switch {
		case f.Name == "catalog.json":
			catalogJSON = string(f.Data)
		case strings.HasSuffix(f.Name, ".yaml"):
			found, err := Decode(bytes.NewReader(f.Data), f.Name)
			if err != nil {
				fmt.Fprintf(&out, "file: %v\n", err)
			}
			manifests = append(manifests, found...)
		}
	}
	file, err := ReadCatalog(strings.NewReader(catalogJSON))
	if err != nil {
		t.Fatal(err)
	}
	store := fleet.NewStore()
	if live {
		m := NewMirror(store, Settings{})
		for _, x := range manifests {
			m.Apply(x.Object)
		}
	} else {
		expanded := Expand(manifests)
		for _, err := range expanded.Problems {
			fmt.Fprintf(&out, "file: %v\n", err)
		}
		store = FromFiles(expanded.Objects.List())
	}
	catalog, err := file.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	in, err := store.Snapshot().Problem(context.Background(), fixedCatalog{catalog}, fleet.Options{Now: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	describe(&out, in)
	return out.String()
}

type fixedCatalog struct{ catalog *fleet.Catalog }

func (c fixedCatalog) Catalog(context.Context, string) (*fleet.Catalog, error) { return c.catalog, nil }

const smallCatalog = `{"region":"eastus","instanceTypes":[
 {"name":"D2","arch":"amd64","labels":{"kubernetes.io/os":"linux"},"capacity":{"cpu":"2","memory":"8Gi","ephemeral-storage":"128G","pods":"110"},
  "overhead":{"cpu":"100m","memory":"2Gi"},"volumeSlots":{"disk.csi.azure.com":4},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":0.1},{"zone":"eastus-2","capacityType":"spot","price":0.02}]},
 {"name":"D4","arch":"amd64","labels":{"kubernetes.io/os":"linux"},"capacity":{"cpu":"4","memory":"16Gi","ephemeral-storage":"128G","pods":"110"},
  "overhead":{"cpu":"140m","memory":"3Gi"},"volumeSlots":{"disk.csi.azure.com":8},
  "offerings":[{"zone":"eastus-1","capacityType":"on-demand","price":0.2},{"zone":"eastus-2","capacityType":"on-demand","price":0.2}]}]}`

// describe writes a problem so that a person can check it against the objects.
func describe(out *strings.Builder, in *fleet.Input) {
	p := in.Problem
	fmt.Fprintf(out, "axes: %s\n", strings.Join(p.Axes, " "))
	for i := range p.Pools {
		describePool(out, &p.Pools[i], p.Axes)
	}
	for i := range p.Nodes {
		describeNode(out, &p.Nodes[i], p.Axes)
	}
	for i := range p.Shapes {
		fmt.Fprintf(out, "\nshape %d: %s\n", i, shapeText(&p.Shapes[i]))
	}
	for i := range p.Classes {
		describeClass(out, &p.Classes[i], p.Axes)
	}
	for _, r := range in.Rejected {
		fmt.Fprintf(out, "\nrejected %s (%s): %s: %s", r.Pod, r.Owner, r.Reason, r.Message)
		if r.Quiet {
			out.WriteString(" (quiet)")
		}
		out.WriteByte('\n')
	}
	for _, l := range in.Problem.LeftOut {
		fmt.Fprintf(out, "\nleft out %s: %s: %s\n", l.Pool, l.Reason, l.Message)
	}
}

// line writes "  name: value" unless the value is empty.
func line(out *strings.Builder, name, value string) {
	if value != "" && value != "[]" && value != "map[]" {
		fmt.Fprintf(out, "  %s: %s\n", name, value)
	}
}

func describePool(out *strings.Builder, p *model.Pool, axes model.Axes) {
	fmt.Fprintf(out, "\npool %s weight %d nodes %d of %d\n", p.Name, p.Weight, p.Nodes, p.NodeLimit)
	for _, r := range p.Requirements {
		text := r.String()
		if r.MinValues > 0 {
			text += fmt.Sprintf(" (at least %d)", r.MinValues)
		}
		line(out, "requires", text)
	}
	line(out, "taints", fmt.Sprint(p.Taints))
	line(out, "startup taints", fmt.Sprint(p.StartupTaints))
	for _, l := range p.Limits {
		line(out, "limit", axes[l.Axis]+" "+model.FormatAmount(l.Axis, l.Value))
	}
	if !p.Usage.IsZero() {
		line(out, "usage", p.Usage.Format(axes))
	}
	for _, d := range p.Daemons {
		line(out, "daemon", fmt.Sprintf("%s takes %s", d.Name, d.Requests.Format(axes)))
		for _, rs := range d.Requirements {
			line(out, "  where", rs.String())
		}
		for _, port := range d.HostPorts {
			line(out, "  host port", portText(port))
		}
	}
}

func describeNode(out *strings.Builder, n *model.Node, axes model.Axes) {
	fmt.Fprintf(out, "\nnode %s %s pool %q claim %q price %s\n", n.Name, n.State, n.Pool, n.Claim, n.Price)
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		line(out, "label", k+"="+n.Labels[k])
	}
	line(out, "taints", fmt.Sprint(n.Taints))
	line(out, "allocatable", n.Allocatable.Format(axes))
	line(out, "used", n.Used.Format(axes))
	for _, port := range n.HostPorts {
		line(out, "host port", portText(port))
	}
	line(out, "free volume slots", fmt.Sprint(n.VolumeSlots))
	for _, v := range n.Attached {
		line(out, "attached", v.Driver+" "+v.ID)
	}
	for _, b := range n.Bound {
		line(out, "bound", fmt.Sprintf("%d of shape %d", b.Count, b.Shape))
	}
}

func describeClass(out *strings.Builder, c *model.PodClass, axes model.Axes) {
	fmt.Fprintf(out, "\nclass of %d, %q, priority %d\n", len(c.Pods), c.Owner, c.Priority)
	line(out, "requests", c.Requests.Format(axes))
	line(out, "seen as", shapeText(&c.PodShape))
	for _, r := range c.NodeRequirements {
		line(out, "needs", r.String())
	}
	for _, rs := range c.NodeAlternatives {
		line(out, "needs one of", rs.String())
	}
	for _, p := range c.NodePreferences {
		line(out, fmt.Sprintf("prefers (%d)", p.Weight), p.Requirements.String())
	}
	line(out, "tolerates", fmt.Sprint(c.Tolerations))
	for i := range c.Spread {
		s := &c.Spread[i]
		line(out, "spread", fmt.Sprintf("%s skew %d min %d hard %v honor affinity %v taints %v over %s",
			s.TopologyKey, s.MaxSkew, s.MinDomains, s.Hard, s.HonorNodeAffinity, s.HonorTaints, selectorText(s.Selector)))
	}
	for i := range c.Affinity {
		line(out, "near", termText(&c.Affinity[i]))
	}
	for i := range c.Preferences {
		verb := "prefers near"
		if c.Preferences[i].Anti {
			verb = "prefers far from"
		}
		line(out, fmt.Sprintf("%s (%d)", verb, c.Preferences[i].Weight), termText(&c.Preferences[i].Term))
	}
	for _, port := range c.HostPorts {
		line(out, "host port", portText(port))
	}
	for _, v := range c.Volumes {
		line(out, "volume", strings.TrimSpace(v.Driver+" "+v.ID))
	}
	for _, rs := range c.VolumeAlternatives {
		line(out, "volumes allow", rs.String())
	}
	var pods []string
	for _, ref := range c.Pods {
		pods = append(pods, ref.String())
	}
	line(out, "pods", strings.Join(pods, " "))
}

func shapeText(s *model.PodShape) string {
	var parts []string
	if len(s.Labels) > 0 {
		parts = append(parts, "in "+s.Namespace)
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			parts = append(parts, k+"="+s.Labels[k])
		}
	}
	for i := range s.AntiAffinity {
		parts = append(parts, "far from "+termText(&s.AntiAffinity[i]))
	}
	return strings.Join(parts, ", ")
}

func termText(t *model.AffinityTerm) string {
	where := "namespaces " + strings.Join(t.Namespaces, ",")
	if t.AllNamespaces {
		where = "all namespaces"
	}
	return fmt.Sprintf("%s by %s in %s", selectorText(t.Selector), t.TopologyKey, where)
}

func selectorText(s *model.Selector) string {
	switch {
	case s == nil:
		return "nothing"
	case len(s.Requirements) == 0:
		return "everything"
	}
	return "{" + s.Requirements.String() + "}"
}

func portText(p model.HostPort) string {
	return strings.TrimPrefix(fmt.Sprintf("%s:%d/%s", p.IP, p.Port, p.Protocol), ":")
}
