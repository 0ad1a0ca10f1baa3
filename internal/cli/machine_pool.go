package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
)

// offeredPools are the NodePools of which one is to be shown, with node classes, by name.
type offeredPools struct {
	pools   map[string]*v1.NodePool
	classes map[string]*nodeclass.NodeClass
	// where is what has them, in words.
	where string
}

// read gives the NodePools of the files and their node classes, or without files those of the
// cluster that flags choose.
func (c *bootdataCommand) read(ctx context.Context) (*offeredPools, error) {
	switch {
	case len(c.files) > 0:
		return c.readFiles(ctx)
	case c.cluster.live.Chosen():
		return readPools(ctx, &c.cluster.live)
	}
	return nil, errors.New("no NodePool: give one with -f FILE, or the cluster that has it with --context")
}

func (c *bootdataCommand) readFiles(ctx context.Context) (*offeredPools, error) {
	in, err := (&inputFlags{files: c.files}).read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(in.problems...); err != nil {
		return nil, err
	}
	if err := admitted(in.manifests, nil); err != nil {
		return nil, err
	}
	out := &offeredPools{pools: map[string]*v1.NodePool{}, classes: in.classes, where: inWords(c.files)}
	for _, m := range in.manifests {
		if pool, is := m.Object.(*v1.NodePool); is {
			out.pools[pool.Name] = in.pools[pool.Name]
		}
	}
	return out, nil
}

// readPools lists the NodePools that nap manages in a cluster, and the node classes.
func readPools(ctx context.Context, cluster *command.Cluster) (*offeredPools, error) {
	config, err := cluster.Config(ctx)
	if err != nil {
		return nil, err
	}
	o := &operator{}
	if o.kube, err = client.New(config, client.Options{}); err != nil {
		return nil, unreadable(cluster, config.Host, err)
	}
	pools, err := o.nodePools(ctx)
	if err != nil {
		return nil, unreadable(cluster, config.Host, err)
	}
	classes, err := o.list(ctx, v1beta1.GroupVersion().WithKind(nodeClassKind))
	if err != nil {
		return nil, unreadable(cluster, config.Host, err)
	}
	out := &offeredPools{pools: map[string]*v1.NodePool{}, classes: map[string]*nodeclass.NodeClass{}, where: "the cluster"}
	for i := range pools {
		out.pools[pools[i].Name] = &pools[i]
	}
	for i := range classes {
		class, err := offline.ReadNodeClass(&classes[i])
		if err != nil {
			return nil, fmt.Errorf("AKSNodeClass %s: %w", classes[i].GetName(), err)
		}
		out.classes[class.Name] = class
	}
	return out, nil
}

// choose gives the NodePool of a name, or the only one where that is empty, and its node class.
func (o *offeredPools) choose(name string, streams *command.Streams) (*v1.NodePool, *nodeclass.NodeClass, error) {
	names := slices.Sorted(maps.Keys(o.pools))
	switch {
	case len(names) == 0:
		return nil, nil, fmt.Errorf("%s has no NodePool", o.where)
	case name == "" && len(names) > 1:
		return nil, nil, fmt.Errorf("%s has %d NodePools: choose one with --nodepool: %s", o.where, len(names), strings.Join(names, ", "))
	case name == "":
		name = names[0]
	case o.pools[name] == nil:
		return nil, nil, fmt.Errorf("--nodepool: got %q, allowed: %s", name, strings.Join(names, ", "))
	}
	pool := o.pools[name]
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return nil, nil, fmt.Errorf("NodePool %s: spec.template.spec.nodeClassRef must be set", name)
	}
	class := o.classes[ref.Name]
	if class == nil {
		sayNote(streams.Err, "%s has no AKSNodeClass %s: shown with defaults", o.where, ref.Name)
		class = offline.DefaultNodeClass(ref.Name)
	}
	return pool, class, nil
}
