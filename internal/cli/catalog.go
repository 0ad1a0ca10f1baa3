package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// catalogCommand is "nap catalog" before it runs.
type catalogCommand struct {
	streams  command.Streams
	catalog  catalogFlags
	output   string
	selector string
	sort     string
}

func newCatalog(s command.Streams) *cobra.Command {
	c := &catalogCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Show what can be bought: sizes, prices, zones, room for pods",
		Long: `Show every VM size that nap can buy in a region, with what a node of that size
has left for pods, where it is sold and for how much an hour: the machine, its
managed disk (column DISK, included in the prices) and what --prices-file adds.

-o json prints a catalogue that nap plan --catalog reads: change the prices to
your own, drop sizes, or write another cloud's, and plan against it.`,
		Example: `  nap catalog --region westeurope
  nap catalog -l karpenter.azure.com/sku-family=D,kubernetes.io/arch=arm64 --sort price
  nap catalog -o json > catalog.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.run() },
	}
	c.catalog.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&c.output, "output", "o", "table", "table, wide, json, yaml, csv or name")
	flags.StringVarP(&c.selector, "selector", "l", "", "only sizes with these labels, such as karpenter.azure.com/sku-family=D")
	flags.StringVar(&c.sort, "sort", "name", "name, price, cpu or memory")
	return cmd
}

func (c *catalogCommand) run() error {
	if err := oneOf("output", c.output, "table", "wide", "json", "yaml", "csv", "name"); err != nil {
		return err
	}
	if err := oneOf("sort", c.sort, "name", "price", "cpu", "memory"); err != nil {
		return err
	}
	wanted, err := labels.Parse(c.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if err := c.catalog.checkRegion(); err != nil {
		return err
	}
	source, err := c.catalog.open(nil, func(string) string { return "" })
	if err != nil {
		return err
	}
	catalog := *source.ForClass("")
	catalog.InstanceTypes = slices.DeleteFunc(slices.Clone(catalog.InstanceTypes), func(t model.InstanceType) bool {
		return !wanted.Matches(labels.Set(t.Labels))
	})
	sortTypes(catalog.InstanceTypes, c.sort)
	if source.Note != "" {
		fmt.Fprintf(c.streams.Err, "note: %s\n", source.Note)
	}
	if len(catalog.InstanceTypes) == 0 {
		fmt.Fprintf(c.streams.Err, "note: no size has the labels %s; -o wide shows those that there are\n", c.selector)
	}
	return writeCatalog(c.streams.Out, c.output, source.Region, &catalog)
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

// diskText is what the managed disk of a node costs, which the prices include.
func diskText(t *model.InstanceType) string {
	for i := range t.Offerings {
		if disk := t.Offerings[i].DiskPrice; disk > 0 {
			return dollars(disk.Dollars())
		}
	}
	return "-"
}

func priceText(m model.Money) string {
	if m == notSold {
		return "-"
	}
	return dollars(m.Dollars())
}

func writeCatalog(w io.Writer, form, region string, c *fleet.Catalog) error {
	switch form {
	case "json", "yaml":
		return writeDocument(w, form, kube.NewCatalogFile(region, c))
	case "name":
		for i := range c.InstanceTypes {
			if _, err := fmt.Fprintln(w, c.InstanceTypes[i].Name); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return writeCatalogCSV(w, c)
	}
	return writeCatalogTable(w, form == "wide", c)
}

// catalogColumns are the columns of the table form; wide adds more.
func catalogColumns(wide bool) []string {
	columns := []string{"SIZE", "ARCH", "VCPU", "MEMORY", "GPU", "ZONES", "ON-DEMAND", "SPOT", "DISK", "CPU FOR PODS", "MEMORY FOR PODS"}
	if wide {
		columns = append(columns, "PODS", "DATA DISKS", "LABELS")
	}
	return columns
}

func catalogRow(t *model.InstanceType, axes model.Axes, wide bool) []string {
	room := t.Allocatable()
	row := []string{
		t.Name, t.Labels["kubernetes.io/arch"],
		cores(t.Capacity.Get(model.CPU)), memoryText(t), gpuText(t, axes), zonesText(t),
		priceText(cheapest(t, model.OnDemand)), priceText(cheapest(t, model.Spot)), diskText(t),
		cores(room.Get(model.CPU)), model.FormatAmount(model.Memory, room.Get(model.Memory)),
	}
	if !wide {
		return row
	}
	var text []string
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		text = append(text, k+"="+t.Labels[k])
	}
	disks := "-"
	for _, n := range t.VolumeSlots {
		disks = fmt.Sprint(n)
	}
	return append(row, fmt.Sprint(t.Capacity.Get(model.Pods)), disks, strings.Join(text, ","))
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

func writeCatalogTable(out io.Writer, wide bool, c *fleet.Catalog) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(catalogColumns(wide), "\t"))
	for i := range c.InstanceTypes {
		fmt.Fprintln(w, strings.Join(catalogRow(&c.InstanceTypes[i], c.Axes, wide), "\t"))
	}
	return w.Flush()
}

func writeCatalogCSV(out io.Writer, c *fleet.Catalog) error {
	w := csv.NewWriter(out)
	rows := [][]string{catalogColumns(true)}
	for i := range c.InstanceTypes {
		rows = append(rows, catalogRow(&c.InstanceTypes[i], c.Axes, true))
	}
	return w.WriteAll(rows)
}
