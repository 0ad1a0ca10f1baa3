package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/document"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// CatalogFile is a catalogue as a document: what nap catalog prints and
// nap plan --catalog reads. It is how a private price list, or another cloud's
// sizes, come in.
type CatalogFile struct {
	Region        string             `json:"region"`
	InstanceTypes []FileInstanceType `json:"instanceTypes"`
}

// FileInstanceType is one size of a CatalogFile. Quantities are written as in
// Kubernetes.
type FileInstanceType struct {
	Name     string            `json:"name"`
	Arch     string            `json:"arch,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Capacity Quantities        `json:"capacity"`
	Overhead Quantities        `json:"overhead,omitempty"`
	// Choices are labels whose value the buyer picks per node.
	Choices map[string][]string `json:"choices,omitempty"`
	// VolumeSlots are the disks that a node can attach, per CSI driver.
	VolumeSlots map[string]int `json:"volumeSlots,omitempty"`
	GPU         *FileGPU       `json:"gpu,omitempty"`
	Offerings   []FileOffering `json:"offerings"`
}

// FileGPU is what is known of the GPUs of a size, for resource claims: how many there are,
// and what NVIDIA's driver lists of each. MemoryLeast and MemoryMost are quantities.
type FileGPU struct {
	Count             int64  `json:"count"`
	Product           string `json:"product"`
	Architecture      string `json:"architecture"`
	ComputeCapability string `json:"computeCapability"`
	MemoryLeast       string `json:"memoryLeast"`
	MemoryMost        string `json:"memoryMost"`
}

// FileOffering is one way to buy a size. Price is what the machine costs, in dollars
// per hour; DiskPrice and NodePrice, of the managed operating system disk and of what
// is paid for every node beside, come on top. Available is true when left out.
type FileOffering struct {
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	Price        float64           `json:"price"`
	DiskPrice    float64           `json:"diskPrice,omitempty"`
	NodePrice    float64           `json:"nodePrice,omitempty"`
	Available    *bool             `json:"available,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// Reservation names a capacity reservation and Remaining counts what it
	// holds (capacity type reserved only).
	Reservation string `json:"reservation,omitempty"`
	Remaining   int    `json:"remaining,omitempty"`
}

// Quantities are quantities by resource. Like Kubernetes, it takes plain numbers for
// them, too.
type Quantities map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (q *Quantities) UnmarshalJSON(raw []byte) error {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return fmt.Errorf("capacity and overhead: must be mappings of resources to quantities: %w", err)
	}
	*q = Quantities{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch v := values[name].(type) {
		case string:
			(*q)[name] = v
		case json.Number:
			(*q)[name] = v.String()
		default:
			return fmt.Errorf("%s: got %v, must be a quantity such as 4, 500m or 16Gi", name, v)
		}
	}
	return nil
}

// notNumber finds what stands for a number that is none, in JSON and in YAML.
var notNumber = regexp.MustCompile(`(?i)[:\s][+-]?(nan|inf|infinity|\.nan|\.inf)\s*(,|\}|\]|#|$)`)

// numberless names the line of a document that has no number where one is needed.
func numberless(raw []byte) error {
	for i, line := range bytes.Split(raw, []byte("\n")) {
		if m := notNumber.FindSubmatch(line); m != nil {
			return fmt.Errorf("catalogue: line %d: got %s, must be a number: zero or more dollars per hour", i+1, m[1])
		}
	}
	return nil
}

// ReadCatalog reads and checks a catalogue document, in JSON or in YAML. What is not of its form
// is named as a whole, and of sizes the first mistake: by size, field, value and what is allowed.
func ReadCatalog(r io.Reader) (*CatalogFile, error) {
	f := &CatalogFile{}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	value, err := document.One(raw)
	if found := numberless(raw); err != nil && found != nil {
		return nil, found
	}
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if value == nil {
		return nil, errors.New("catalogue is not of the form {\"region\",\"instanceTypes\":[...]}: it is empty; nap catalog -o json prints one")
	}
	if err := document.Check(value, f); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if err := json.Unmarshal(value, f); err != nil {
		return nil, fmt.Errorf("catalogue: %w", plainer(value, err))
	}
	if _, err := f.Catalog(); err != nil {
		return nil, err
	}
	return f, nil
}

// Catalog converts the document.
func (f *CatalogFile) Catalog() (*fleet.Catalog, error) {
	if len(f.InstanceTypes) == 0 {
		return nil, fmt.Errorf("catalogue: instanceTypes is empty, must list at least one size")
	}
	var names []string
	for i := range f.InstanceTypes {
		for name := range f.InstanceTypes[i].Capacity {
			names = append(names, name)
		}
	}
	c := &fleet.Catalog{Axes: model.NewAxes(names...)}
	seen := map[string]bool{}
	for i := range f.InstanceTypes {
		t := &f.InstanceTypes[i]
		if t.Name == "" {
			return nil, fmt.Errorf("catalogue: instanceTypes[%d].name is empty", i)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("catalogue: instanceTypes[%d].name: %q occurs twice, names must be unique", i, t.Name)
		}
		seen[t.Name] = true
		out, err := t.convert(c.Axes, f.Region)
		if err != nil {
			return nil, fmt.Errorf("catalogue: size %q: %w", t.Name, err)
		}
		c.InstanceTypes = append(c.InstanceTypes, out)
	}
	slices.SortFunc(c.InstanceTypes, func(a, b model.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// defaultOS is what machines run of whose operating system a catalogue says
// nothing.
const defaultOS = "linux"

func (t *FileInstanceType) convert(axes model.Axes, region string) (model.InstanceType, error) {
	labels := map[string]string{corev1.LabelOSStable: defaultOS}
	if region != "" {
		labels[corev1.LabelTopologyRegion] = region
	}
	out := model.InstanceType{Name: t.Name, Labels: labels, Choices: t.Choices, VolumeSlots: t.VolumeSlots}
	if err := t.check(); err != nil {
		return out, err
	}
	for k, v := range t.Labels {
		out.Labels[NormalizeLabel(k)] = normalizeValue(NormalizeLabel(k), v)
	}
	if t.Arch != "" {
		out.Labels[corev1.LabelArchStable] = t.Arch
	}
	if arch := out.Labels[corev1.LabelArchStable]; arch != "" && arch != v1.ArchitectureAmd64 && arch != v1.ArchitectureArm64 {
		return out, fmt.Errorf("arch: got %q, allowed: %s, %s", arch, v1.ArchitectureAmd64, v1.ArchitectureArm64)
	}
	out.Labels[model.LabelInstanceType] = t.Name
	size, err := readAmounts(t.Capacity, "capacity")
	if err != nil {
		return out, err
	}
	for _, name := range []string{"cpu", "memory", "pods"} {
		if _, given := t.Capacity[name]; !given {
			return out, fmt.Errorf("capacity[%s]: is missing, must be greater than zero", name)
		}
		if size.Get(name) <= 0 {
			return out, fmt.Errorf("capacity[%s]: got %q, must be greater than zero", name, t.Capacity[name])
		}
	}
	kept, err := readAmounts(t.Overhead, "overhead")
	if err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Overhead)) {
		if kept.Get(name) > size.Get(name) {
			return out, fmt.Errorf("overhead[%s]: got %q, must not be more than the capacity, %q", name, t.Overhead[name], t.Capacity[name])
		}
	}
	out.Capacity, out.Overhead = size.Vector(axes), kept.Vector(axes)
	if out.GPU, err = t.GPU.convert(); err != nil {
		return out, fmt.Errorf("gpu.%w", err)
	}
	if len(t.Offerings) == 0 {
		return out, errors.New("offerings: is empty, must list at least one way to buy the size")
	}
	type offeringKey struct{ zone, capacityType, reservation string }
	seen := map[offeringKey]bool{}
	for i := range t.Offerings {
		o, err := t.Offerings[i].convert()
		if err != nil {
			return out, fmt.Errorf("offerings[%d].%w", i, err)
		}
		key := offeringKey{o.Zone, string(o.CapacityType), o.Reservation}
		if seen[key] {
			return out, fmt.Errorf("offerings[%d]: zone %q with capacityType %q occurs twice", i, o.Zone, o.CapacityType)
		}
		seen[key] = true
		out.Offerings = append(out.Offerings, o)
	}
	return out, nil
}

// highestPrice is more than any machine costs per hour, in dollars; sums of such
// prices are still exact.
const highestPrice = 1_000_000

// check looks at what is not a quantity.
func (t *FileInstanceType) check() error {
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		if err := checkLabel(k, []string{t.Labels[k]}, "labels["+k+"]"); err != nil {
			return err
		}
		if v := t.Labels[k]; NormalizeLabel(k) == model.LabelInstanceType && v != t.Name {
			return fmt.Errorf("labels[%s]: got %q, must be the size's name or left out", k, v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Choices)) {
		field := "choices[" + k + "]"
		if err := checkLabel(k, t.Choices[k], field); err != nil {
			return err
		}
		if len(t.Choices[k]) == 0 {
			return fmt.Errorf("%s: is empty, must list at least one value", field)
		}
		if slices.Contains([]string{model.LabelZone, model.LabelCapacityType, model.LabelInstanceType}, NormalizeLabel(k)) {
			return fmt.Errorf("%s: is settled by the size and its offerings, use another key", field)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(t.VolumeSlots)) {
		if n := t.VolumeSlots[driver]; n < 0 {
			return fmt.Errorf("volumeSlots[%s]: got %d, must be zero or more disks", driver, n)
		}
	}
	return nil
}

// version is three numbers with dots.
var version = regexp.MustCompile(`^\d{1,6}\.\d{1,6}\.\d{1,6}$`)

func (g *FileGPU) convert() (*model.GPU, error) {
	if g == nil {
		return nil, nil
	}
	memory, err := readAmounts(Quantities{"least": g.MemoryLeast, "most": g.MemoryMost}, "memory")
	least, most := memory.Get("least"), memory.Get("most")
	switch {
	case err != nil:
		return nil, err
	case g.Count < 1 || g.Count >= model.WholeDevices:
		return nil, fmt.Errorf("count: got %d, must be 1 or more", g.Count)
	case !version.MatchString(g.ComputeCapability):
		return nil, fmt.Errorf("computeCapability: got %q, must be three numbers such as 8.0.0", g.ComputeCapability)
	case least <= 0 || most < least:
		return nil, fmt.Errorf("memoryMost: got %q, must be at least memoryLeast, %q, which must be more than zero", g.MemoryMost, g.MemoryLeast)
	}
	return &model.GPU{
		Count: g.Count, Product: g.Product, Architecture: g.Architecture, ComputeCapability: g.ComputeCapability,
		MemoryLeast: least, MemoryMost: most,
	}, nil
}

func fileGPU(g *model.GPU) *FileGPU {
	if g == nil {
		return nil
	}
	return &FileGPU{
		Count: g.Count, Product: g.Product, Architecture: g.Architecture, ComputeCapability: g.ComputeCapability,
		MemoryLeast: resource.NewQuantity(g.MemoryLeast, resource.BinarySI).String(),
		MemoryMost:  resource.NewQuantity(g.MemoryMost, resource.BinarySI).String(),
	}
}

func (o *FileOffering) convert() (model.Offering, error) {
	out := model.Offering{
		Zone:         normalizeValue(corev1.LabelTopologyZone, o.Zone),
		CapacityType: model.CapacityType(o.CapacityType),
		Labels:       maps.Clone(o.Labels),
		Price:        model.USD(o.Price) + model.USD(o.DiskPrice) + model.USD(o.NodePrice),
		DiskPrice:    model.USD(o.DiskPrice),
		NodePrice:    model.USD(o.NodePrice),
		Available:    o.Available == nil || *o.Available,
		Reservation:  o.Reservation,
		Remaining:    o.Remaining,
	}
	switch out.CapacityType {
	case model.OnDemand, model.Spot, model.Reserved:
	default:
		return out, fmt.Errorf("capacityType: got %q, allowed: on-demand, spot, reserved", o.CapacityType)
	}
	for _, p := range []struct {
		field   string
		dollars float64
	}{{"price", o.Price}, {"diskPrice", o.DiskPrice}, {"nodePrice", o.NodePrice}} {
		if math.IsNaN(p.dollars) || math.IsInf(p.dollars, 0) || p.dollars < 0 {
			return out, fmt.Errorf("%s: got %v, must be zero or more dollars per hour", p.field, p.dollars)
		}
		if p.dollars > highestPrice {
			return out, fmt.Errorf("%s: got %v, must be at most %d dollars per hour", p.field, p.dollars, highestPrice)
		}
	}
	switch reserved := out.CapacityType == model.Reserved; {
	case o.Remaining < 0:
		return out, fmt.Errorf("remaining: got %d, must be zero or more machines", o.Remaining)
	case !reserved && o.Remaining > 0:
		return out, fmt.Errorf("remaining: got %d, is only for capacityType reserved", o.Remaining)
	case !reserved && o.Reservation != "":
		return out, fmt.Errorf("reservation: got %q, is only for capacityType reserved", o.Reservation)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		if err := checkLabel(k, []string{o.Labels[k]}, "labels["+k+"]"); err != nil {
			return out, err
		}
	}
	if !out.Available {
		out.Unavailable = "the catalogue lists it as unavailable"
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[model.LabelZone] = out.Zone
	out.Labels[model.LabelCapacityType] = string(out.CapacityType)
	return out, nil
}

func readAmounts(in map[string]string, field string) (fleet.Amounts, error) {
	var a fleet.Amounts
	for _, name := range slices.Sorted(maps.Keys(in)) {
		q, err := resource.ParseQuantity(in[name])
		if err != nil {
			return a, fmt.Errorf("%s[%s]: got %q, must be a quantity such as 4, 500m or 16Gi", field, name, in[name])
		}
		if q.Sign() < 0 {
			return a, fmt.Errorf("%s[%s]: got %q, must not be negative", field, name, in[name])
		}
		v := amount(corev1.ResourceName(name), q)
		if v >= absurd {
			return a, fmt.Errorf("%s[%s]: got %q, which is more than any machine will ever have", field, name, in[name])
		}
		a.Set(name, v)
	}
	return a, nil
}

// NewCatalogFile writes a catalogue as a document, sizes by name.
func NewCatalogFile(region string, c *fleet.Catalog) *CatalogFile {
	f := &CatalogFile{Region: region}
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		out := FileInstanceType{
			Name:        t.Name,
			Arch:        t.Labels[corev1.LabelArchStable],
			Labels:      t.Labels,
			Choices:     t.Choices,
			VolumeSlots: t.VolumeSlots,
			GPU:         fileGPU(t.GPU),
			Capacity:    WriteAmounts(t.Capacity, c.Axes),
			Overhead:    WriteAmounts(t.Overhead, c.Axes),
		}
		for j := range t.Offerings {
			o := fileOffering(&t.Offerings[j])
			if n := len(out.Offerings); n == 0 || !reflect.DeepEqual(out.Offerings[n-1], o) { // one of which some are paid in advance is there again
				out.Offerings = append(out.Offerings, o)
			}
		}
		f.InstanceTypes = append(f.InstanceTypes, out)
	}
	return f
}

// fileOffering is an offering at the price of any number of machines: a file does not say of how
// many another is paid in advance.
func fileOffering(o *model.Offering) FileOffering {
	machine, available := cmp.Or(o.Uncovered, o.Price)-o.DiskPrice-o.NodePrice, o.Available
	labels := maps.Clone(o.Labels)
	delete(labels, model.LabelZone)
	delete(labels, model.LabelCapacityType)
	return FileOffering{
		Zone:         o.Zone,
		CapacityType: string(o.CapacityType),
		Price:        machine.Dollars(),
		DiskPrice:    o.DiskPrice.Dollars(),
		NodePrice:    o.NodePrice.Dollars(),
		Available:    &available,
		Labels:       labels,
		Reservation:  o.Reservation,
		Remaining:    o.Remaining,
	}
}

// WriteAmounts writes the quantities of a vector that are not zero, as
// Kubernetes does.
func WriteAmounts(v model.Resources, axes model.Axes) map[string]string {
	out := map[string]string{}
	for i, name := range axes {
		value := v.Get(i)
		if value == 0 {
			continue
		}
		q := resource.NewQuantity(value, resource.DecimalSI)
		switch i {
		case model.CPU:
			q = resource.NewMilliQuantity(value, resource.DecimalSI)
		case model.Memory:
			q = resource.NewQuantity(value, resource.BinarySI)
		}
		out[name] = q.String()
	}
	return out
}
