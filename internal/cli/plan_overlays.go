package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube/nodeoverlay"
)

// overlayGate is the feature gate without which a controller ignores NodeOverlays.
const overlayGate = "NodeOverlay"

// overlayInput are the NodeOverlays that were read.
type overlayInput struct {
	// files are those of files, which always have an effect. live are those of the
	// cluster, which have one where its controller has the gate.
	files, live []v1alpha1.NodeOverlay
	// refused are those that have no effect, and why.
	refused []error
}

// note remembers an overlay of a file or of the cluster; a file's replaces the cluster's.
func (in *overlayInput) note(o *v1alpha1.NodeOverlay, ofCluster bool) {
	if ofCluster {
		in.live = append(in.live, *o)
		return
	}
	in.live = slices.DeleteFunc(in.live, func(l v1alpha1.NodeOverlay) bool { return l.Name == o.Name })
	in.files = append(in.files, *o)
}

// ignored says that the cluster's overlays have no effect, in one sentence, or "".
func (in *overlayInput) ignored(t *told) string {
	if len(in.live) == 0 || t == nil || t.document == nil || slices.Contains(t.document.Status.FeatureGates, overlayGate) {
		return ""
	}
	return fmt.Sprintf("%s of the cluster ignored, as its controller does: it runs without --feature-gates %s=true: %s",
		plural(len(in.live), "NodeOverlay"), overlayGate, names(in.live))
}

func names(overlays []v1alpha1.NodeOverlay) string {
	out := make([]string, len(overlays))
	for i := range overlays {
		out[i] = overlays[i].Name
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// applyOverlays gives the overlays that count their effect on what NodePools can buy.
func (p *planInput) applyOverlays(ctx context.Context, s *offline.Source) error {
	overlays := slices.Clone(p.overlays.files)
	if p.overlays.ignored(p.told) == "" {
		overlays = append(overlays, p.overlays.live...)
	}
	if len(overlays) == 0 {
		return nil
	}
	cloudprovider.RegisterLabels()
	var pools []nodeoverlay.Pool
	for _, name := range slices.Sorted(maps.Keys(p.pools)) {
		pools = append(pools, nodeoverlay.Pool{NodePool: p.pools[name], Catalog: s.ForClass(s.ClassOf(name))})
	}
	result, err := nodeoverlay.Evaluate(ctx, overlays, pools)
	if err != nil {
		return err
	}
	s.Overlaid = result.Catalog
	refused := map[string]bool{}
	for _, r := range result.Refused {
		refused[r.Overlay] = true
		p.overlays.refused = append(p.overlays.refused, fmt.Errorf("NodeOverlay %s has no effect: %s: %s", r.Overlay, r.Reason, r.Message))
	}
	overlays = slices.DeleteFunc(overlays, func(o v1alpha1.NodeOverlay) bool { return refused[o.Name] })
	if len(overlays) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("planned with %s: %s", plural(len(overlays), "NodeOverlay"), names(overlays)))
	}
	return nil
}
