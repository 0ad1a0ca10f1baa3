package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// catalogFlags say what can be bought.
type catalogFlags struct {
	region string
	file   string
	// prices is a file of what the subscription pays, see [price.Terms].
	prices string
	// advance counts what is paid in advance, less what machines use up: sizes of on-demand
	// machines by name.
	advance  bool
	machines map[string]string
	// listed leaves what is paid in advance out, for sums of nodes that exist.
	listed bool
	// told is what a live cluster's controller tells; nil without.
	told *told
	// cluster is the value of the label that all nodes of the cluster have; empty where it is not known.
	cluster string
}

// checkRegion writes the region of the flags as Azure's API does. A catalogue has a name
// of its own for its region.
func (f *catalogFlags) checkRegion() error {
	if f.region == "" || f.file != "" {
		return nil
	}
	name, err := price.RegionName(f.region)
	if err != nil {
		return fmt.Errorf("--region: %w", err)
	}
	f.region = name
	return nil
}

// unused is a catalogue for which everything that is paid in advance is there, since no machines
// are known.
func (f catalogFlags) unused() catalogFlags {
	f.advance = true
	return f
}

// open reads the catalogue file, or lays out the built-in table for the region
// and the node classes.
func (f catalogFlags) open(classes map[string]*nodeclass.NodeClass, classOf func(string) string) (*offline.Source, error) {
	s, err := f.openSource(classes)
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread) && unread.Path == f.file:
		return nil, fmt.Errorf("--catalog %s: %w: give the path of a file, as nap catalog -o json prints it", f.file, unread.Err)
	case errors.As(err, &unread) && unread.Path == f.prices:
		return nil, fmt.Errorf("--prices-file %s: %w: give the path of a file of prices (docs/prices.md)", f.prices, unread.Err)
	case err != nil:
		return nil, err
	}
	s.ClassOf = classOf
	return s, nil
}

func (f catalogFlags) openSource(classes map[string]*nodeclass.NodeClass) (*offline.Source, error) {
	if f.file != "" {
		if f.prices != "" {
			return nil, errors.New("--catalog and --prices-file cannot be given together: a catalogue states its own prices")
		}
		return offline.OpenFile(f.file, f.region)
	}
	if f.told == nil {
		granted := offline.Granted()
		granted.Advance, granted.Machines, granted.Cluster = f.advance, f.machines, f.cluster
		return offline.Open(f.region, f.prices, classes, granted)
	}
	refused, err := f.told.refusals(time.Now)
	if err != nil {
		return nil, err
	}
	left := f.told.quotas(time.Now)
	return offline.Open(f.region, f.prices, classes, offline.Told{
		Unavailable: refused, Quota: left, Quotas: left.Quotas(), Terms: f.told.document.Terms, Advance: f.advance, Machines: f.machines,
		Cluster: f.cluster, Retail: f.told.document.Memory[snapshot.MemoryPrices],
		Note: "quota and refusals from the controller's snapshot of " + f.told.document.Status.Written.UTC().Format(time.RFC3339),
	})
}
