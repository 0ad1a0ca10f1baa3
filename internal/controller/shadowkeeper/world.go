package shadowkeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// world is a cluster as it is planned for.
type world struct {
	// objects are the cache's own and never changed; assumed are those that the cluster lacks.
	objects, assumed []client.Object
	source           *offline.Source
	// notes say what is assumed.
	notes []string
}

// market is the catalogue for a region and its node classes, which is costly to lay out.
type market struct {
	key    string
	source *offline.Source
}

// world reads the cluster.
func (k *Keeper) world(ctx context.Context) (*world, error) {
	objects, missing, err := kube.ListCached(ctx, k.Cluster)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	w := &world{}
	for _, kind := range missing {
		w.notes = append(w.notes, "the cluster has no "+kind)
	}
	region, cluster, overlays := "", "", 0
	var classes []*unstructured.Unstructured
	pools := map[string]*v1.NodePool{}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.NodeOverlay:
			overlays++
			continue
		case *v1.NodePool:
			pools[o.Name] = o
		case *corev1.Node:
			region = cmp.Or(region, o.Labels[corev1.LabelTopologyRegion])
			cluster = cmp.Or(cluster, o.Labels[instancetype.LabelAKSCluster])
		case *unstructured.Unstructured:
			classes = append(classes, o)
		}
		w.objects = append(w.objects, o)
	}
	if overlays > 0 {
		w.notes = append(w.notes, fmt.Sprintf("not taken into account: NodeOverlays, %d of them", overlays))
	}
	if len(pools) == 0 {
		w.notes = append(w.notes, "no NodePool in the cluster: "+offline.NodePoolNote)
		for _, o := range kube.Expand([]kube.Manifest{{Source: "the default NodePool", Object: offline.DefaultNodePool()}}).Objects.Distinct() {
			w.assumed = append(w.assumed, o)
			if pool, is := o.(*v1.NodePool); is {
				pools[pool.Name] = pool
			}
		}
	}
	if err := k.openMarket(region, cluster, classes); err != nil {
		return nil, err
	}
	w.source = k.market.source
	w.source.ClassOf = func(nodePool string) string {
		if np := pools[nodePool]; np != nil && np.Spec.Template.Spec.NodeClassRef != nil {
			return np.Spec.Template.Spec.NodeClassRef.Name
		}
		return ""
	}
	w.notes = append(w.notes, w.source.Note)
	return w, nil
}

// openMarket lays out the catalogue where the region, the cluster's label or a node class has
// changed.
func (k *Keeper) openMarket(region, cluster string, objects []*unstructured.Unstructured) error {
	versions := []string{region, cluster}
	for _, o := range objects {
		versions = append(versions, o.GetName()+"@"+o.GetResourceVersion())
	}
	slices.Sort(versions)
	key := strings.Join(versions, " ")
	if k.market.source != nil && k.market.key == key {
		return nil
	}
	classes := map[string]*nodeclass.NodeClass{}
	for _, o := range objects {
		class, err := offline.ReadNodeClass(o)
		if err != nil {
			return fmt.Errorf("AKSNodeClass %s: %w", o.GetName(), err)
		}
		classes[class.Name] = class
	}
	granted := offline.Granted()
	granted.Cluster = cluster
	source, err := offline.Open(region, k.PricesFile, classes, granted)
	if err != nil {
		return err
	}
	k.market = market{key: key, source: source}
	return nil
}
