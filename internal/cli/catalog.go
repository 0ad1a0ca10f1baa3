package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// catalogCommand is "nap catalog" before it runs.
type catalogCommand struct {
	streams command.Streams
	// input has no files: a cluster is asked only where flags choose one.
	input     inputFlags
	output    string
	noHeaders bool
	selector  string
	sort      string
}

func newCatalog(s command.Streams) *cobra.Command {
	c := &catalogCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Show what can be bought: sizes, prices, zones, room for pods",
		Long: `Show the VM sizes of nap's built-in table, which lacks some that Azure sells and
the controller can buy, with what a node of each size has left for pods
(-o wide), where it is sold and for how much an hour: the machine, its managed
disk (column DISK, included in the prices) and what --prices-file adds. With
--context or --kubeconfig it is the table for that cluster's region, without
what Azure refuses its controller now.

-o json prints a catalogue that nap plan --catalog reads: change the prices to
your own, drop sizes, or write another cloud's, and plan against it.`,
		Example: `  nap catalog --region westeurope
  nap catalog -l karpenter.azure.com/sku-family=D,kubernetes.io/arch=arm64 --sort price
  nap catalog -o json > catalog.json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.input.catalogFlags.add(cmd)
	flags := cmd.Flags()
	c.input.cluster.Add(flags)
	addOutput(cmd, &c.output, rowForms())
	flags.BoolVar(&c.noHeaders, "no-headers", false, "leave the line of headers out")
	flags.StringVarP(&c.selector, "selector", "l", "", "only sizes with these labels, such as karpenter.azure.com/sku-family=D")
	flags.StringVar(&c.sort, "sort", "name", "name, price, cpu or memory")
	completeWords(cmd, "sort", "name", "price", "cpu", "memory")
	return cmd
}

func (c *catalogCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, rowForms()); err != nil {
		return err
	}
	if err := oneOf("sort", c.sort, "name", "price", "cpu", "memory"); err != nil {
		return err
	}
	wanted, err := labels.Parse(c.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	source, err := c.open(ctx)
	if err != nil {
		return err
	}
	catalog := *source.ForClass("")
	catalog.InstanceTypes = slices.DeleteFunc(slices.Clone(catalog.InstanceTypes), func(t model.InstanceType) bool {
		return !wanted.Matches(labels.Set(t.Labels))
	})
	sortTypes(catalog.InstanceTypes, c.sort)
	if source.Note != "" {
		sayNote(c.streams.Err, "%s", source.Note)
	}
	if len(catalog.InstanceTypes) == 0 {
		sayNote(c.streams.Err, "no size has the labels %s; -o wide shows those that there are", c.selector)
	}
	return c.write(c.streams.Out, source.Region, &catalog)
}

// open is what is sold: in a region, or to a cluster where flags choose one.
func (c *catalogCommand) open(ctx context.Context) (*offline.Source, error) {
	if !c.input.cluster.Chosen() {
		if err := c.input.checkRegion(); err != nil {
			return nil, err
		}
		return c.input.unused().open(nil, func(string) string { return "" })
	}
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	source, err := read.source(ctx, c.input.catalogFlags)
	if text := read.told.offline(); err == nil && text != "" {
		fmt.Fprint(c.streams.Err, prose("%s", text))
	}
	return source, err
}

func sortTypes(types []model.InstanceType, by string) {
	slices.SortStableFunc(types, func(a, b model.InstanceType) int {
		order := 0
		switch by {
		case "price":
			order = cmp.Compare(cheapest(&a, model.OnDemand), cheapest(&b, model.OnDemand))
		case "cpu":
			order = cmp.Compare(a.Capacity.Get(model.CPU), b.Capacity.Get(model.CPU))
		case "memory":
			order = cmp.Compare(a.Capacity.Get(model.Memory), b.Capacity.Get(model.Memory))
		}
		return cmp.Or(order, cmp.Compare(a.Name, b.Name))
	})
}

// notSold orders sizes without a price behind all others.
const notSold = model.Money(1 << 62)

func cheapest(t *model.InstanceType, capacityType model.CapacityType) model.Money {
	price := notSold
	for i := range t.Offerings {
		if o := &t.Offerings[i]; o.CapacityType == capacityType {
			price = min(price, o.Price)
		}
	}
	return price
}

// diskPrice is what the managed disk of a node costs, which the prices include; nil without.
func diskPrice(t *model.InstanceType) any {
	for i := range t.Offerings {
		if disk := t.Offerings[i].DiskPrice; disk > 0 {
			return hourly(disk.Dollars())
		}
	}
	return nil
}

// soldFor is a price as a cell; nil of what is not sold.
func soldFor(m model.Money) any {
	if m == notSold {
		return nil
	}
	return hourly(m.Dollars())
}

func (c *catalogCommand) write(w io.Writer, region string, catalog *fleet.Catalog) error {
	switch {
	case isDocument(c.output):
		return writeDocument(w, c.output, kube.NewCatalogFile(region, catalog))
	case c.output == "name":
		for i := range catalog.InstanceTypes {
			if _, err := fmt.Fprintln(w, catalog.InstanceTypes[i].Name); err != nil {
				return err
			}
		}
		return nil
	}
	return catalogListing(catalog).write(w, c.output, c.noHeaders)
}

// catalogListing is the catalogue as rows.
func catalogListing(c *fleet.Catalog) *listing {
	l := &listing{kind: "sizes", single: "size", columns: []listColumn{
		{"SIZE", false}, {"ARCH", true}, {"VCPU", false}, {"MEMORY", false}, {"GPU", false}, {"ZONES", false},
		{"ON-DEMAND", false}, {"SPOT", false}, {"DISK", false},
		{"CPU FOR PODS", true}, {"MEMORY FOR PODS", true}, {"PODS", true}, {"DATA DISKS", true}, {"LABELS", true},
	}}
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		room := t.Allocatable()
		var text []string
		for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
			text = append(text, k+"="+t.Labels[k])
		}
		var disks any
		for _, n := range t.VolumeSlots {
			disks = n
		}
		l.rows = append(l.rows, listRow{name: t.Name, labels: t.Labels, cells: []any{
			sizeName(t.Name), t.Labels["kubernetes.io/arch"], cores(t.Capacity.Get(model.CPU)), memoryText(t), gpuText(t, c.Axes), zoneNumbers(t),
			soldFor(cheapest(t, model.OnDemand)), soldFor(cheapest(t, model.Spot)), diskPrice(t),
			cores(room.Get(model.CPU)), model.FormatAmount(model.Memory, room.Get(model.Memory)),
			int(t.Capacity.Get(model.Pods)), disks, strings.Join(text, ","),
		}})
	}
	return l
}

// memoryText is what the size is sold as, where its labels say so.
func memoryText(t *model.InstanceType) string {
	var mebi int64
	if _, err := fmt.Sscan(t.Labels["karpenter.azure.com/sku-memory"], &mebi); err == nil {
		return model.FormatAmount(model.Memory, mebi<<20)
	}
	return model.FormatAmount(model.Memory, t.Capacity.Get(model.Memory))
}

func gpuText(t *model.InstanceType, axes model.Axes) string {
	for i, name := range axes {
		if n := t.Capacity.Get(i); n > 0 && strings.HasSuffix(name, "/gpu") {
			return strings.TrimSpace(fmt.Sprintf("%d %s", n, t.Labels["karpenter.azure.com/sku-gpu-name"]))
		}
	}
	return "-"
}

// zonesText are the zones in which the size is sold at all.
func zonesText(t *model.InstanceType) string {
	var zones []string
	for i := range t.Offerings {
		zones = append(zones, t.Offerings[i].Zone)
	}
	slices.Sort(zones)
	zones = slices.DeleteFunc(slices.Compact(zones), func(z string) bool { return z == "0" })
	if len(zones) == 0 {
		return "none"
	}
	return strings.Join(zones, ",")
}

// zoneNumbers are the zones in which the size is sold now, without the region.
func zoneNumbers(t *model.InstanceType) string {
	var zones []string
	for i := range t.Offerings {
		if o := &t.Offerings[i]; o.Available && o.Zone != model.NoZone && !slices.Contains(zones, o.Zone) {
			zones = append(zones, o.Zone)
		}
	}
	slices.Sort(zones)
	return cmp.Or(zonesList(zones), "none")
}
