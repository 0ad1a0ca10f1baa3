package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// deviceKind is what a request of a resource claim selects.
type deviceKind struct {
	// label marks the nodes and instance types whose devices of the driver are all of the
	// kind. The GPUs and nodes are those.
	label, driver string
	gpus          map[model.GPU]bool
	nodes         map[*stateNode]bool
	// option is the one that counts on all of them.
	option *DeviceOption
	// problem says why the request cannot be planned. The other fields are valid where it
	// is empty.
	problem string
}

// deviceKinds knows which machines have devices of a kind.
type deviceKinds struct {
	deviceTables
	cluster *clusterNodes
	// gpus are the different ones of all catalogues, as devices.
	gpus map[model.GPU]Device
	// byText are the answers of the method of so far.
	byText map[string]*deviceKind
	// listed are the devices of nodes; nil until a kind is asked for.
	listed *listedDevices
}

func newDeviceKinds(s *Snapshot, nodes *clusterNodes, catalogs *poolCatalogs) *deviceKinds {
	k := &deviceKinds{deviceTables: s.devices, cluster: nodes, gpus: map[model.GPU]Device{}, byText: map[string]*deviceKind{}}
	if k.ofGPU == nil {
		return k
	}
	for _, catalog := range catalogs.byPool {
		for i := range catalog.InstanceTypes {
			if gpu := catalog.InstanceTypes[i].GPU; gpu != nil {
				k.gpus[*gpu] = k.ofGPU(gpu)
			}
		}
	}
	return k
}

// of is the kind that a request selects.
func (k *deviceKinds) of(q *DeviceRequest) *deviceKind {
	text := q.text()
	if known := k.byText[text]; known != nil {
		return known
	}
	kind := k.newKind(q, text)
	k.byText[text] = kind
	return kind
}

// text is what a request selects, in words.
func (q *DeviceRequest) text() string {
	var parts []string
	for i := range q.Options {
		o := &q.Options[i]
		part := fmt.Sprintf("%d of DeviceClass %s", o.Count, o.Class)
		if o.All {
			part = fmt.Sprintf("all of DeviceClass %s", o.Class)
		}
		if len(o.Selectors) > 0 {
			part += " where " + strings.Join(o.Selectors, " and ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", or ")
}

func (k *deviceKinds) newKind(q *DeviceRequest, text string) *deviceKind {
	selectors := make([][]string, len(q.Options))
	for i := range q.Options {
		class := k.classes[q.Options[i].Class]
		if class == nil {
			return &deviceKind{problem: fmt.Sprintf("DeviceClass %s does not exist", q.Options[i].Class)}
		}
		selectors[i] = slices.Concat(class.Selectors, q.Options[i].Selectors)
	}
	c := &kindChoice{q: q, selectors: selectors}
	gpus, nodes := map[model.GPU]machineOption{}, map[*stateNode][]machineOption{}
	for gpu, device := range k.gpus { // the choice does not depend on the order
		gpus[gpu] = c.ask([]Device{device}, gpu.Count)
	}
	for _, n := range k.cluster.list {
		for _, list := range k.on(n).byDriver {
			nodes[n] = append(nodes[n], c.ask(list, int64(len(list))))
		}
	}
	if c.best == nil {
		return &deviceKind{problem: c.missing(text)}
	}
	kind := &deviceKind{
		label: model.DeviceLabel(text), driver: c.best.driver, option: &q.Options[c.best.option],
		gpus: map[model.GPU]bool{}, nodes: map[*stateNode]bool{},
	}
	for gpu, answer := range gpus {
		kind.gpus[gpu] = c.alike(answer)
	}
	for n, answers := range nodes {
		kind.nodes[n] = slices.ContainsFunc(answers, c.alike)
	}
	return kind
}

// machineOption is the option of a request that the scheduler takes among the devices of
// one driver on a machine. It is -1 for none.
type machineOption struct {
	driver string
	option int
}

// kindChoice chooses which option of a request is planned: the first one that any machine
// has, on all machines where an option that takes as many devices of the same driver comes
// first.
type kindChoice struct {
	q *DeviceRequest
	// selectors are those of each option, its class's included.
	selectors [][]string
	// best is nil while no machine has an option. unknown is what is not known of some
	// machine, or empty.
	best    *machineOption
	unknown string
}

// ask finds the option for the devices of one driver. A GPU stands for the given number of
// its like.
func (c *kindChoice) ask(list []Device, count int64) machineOption {
	option, unknown := c.first(list, count)
	answer := machineOption{list[0].Driver, option}
	if option >= 0 && (c.best == nil || option < c.best.option || option == c.best.option && answer.driver < c.best.driver) {
		c.best = &answer
	}
	if unknown != "" && (c.unknown == "" || unknown < c.unknown) {
		c.unknown = unknown
	}
	return answer
}

// first is the option that the scheduler takes, -1 for none; unknown is why that is not
// known, or empty. Devices that are not all alike to a selector are not counted on: it
// then matters which of them are left.
func (c *kindChoice) first(list []Device, count int64) (option int, unknown string) {
	for i := range c.q.Options {
		met := 0
		for _, device := range list {
			meets, why := meetsAll(device, c.selectors[i])
			if why != "" {
				return -1, why
			}
			if meets {
				met++
			}
		}
		switch {
		case met == 0:
		case met < len(list):
			return -1, "the devices of a node differ in what is asked for"
		case c.q.Options[i].All || c.q.Options[i].Count <= count:
			return i, ""
		}
	}
	return -1, ""
}

// meetsAll reports whether a device meets all selectors.
func meetsAll(d Device, selectors []string) (meets bool, unknown string) {
	for _, s := range selectors {
		if meets, unknown := d.Traits.Meets(s); !meets || unknown != "" {
			return false, unknown
		}
	}
	return true, ""
}

// alike reports whether a machine's option takes what the best one takes.
func (c *kindChoice) alike(a machineOption) bool {
	if a.option < 0 || a.driver != c.best.driver {
		return false
	}
	own, best := &c.q.Options[a.option], &c.q.Options[c.best.option]
	return own.All == best.All && (own.All || own.Count == best.Count)
}

// missing says that no machine has what the request selects, as far as is known.
func (c *kindChoice) missing(text string) string {
	said := "no size that nap knows of brings, and no node lists, " + text
	if c.unknown != "" {
		said += "; " + c.unknown
	}
	return said
}

// mark gives the instance types of a catalogue their devices, and a label for each kind.
func (k *deviceKinds) mark(c model.Catalog, axes model.Axes) model.Catalog {
	if len(k.byText) == 0 {
		return c
	}
	c.InstanceTypes = slices.Clone(c.InstanceTypes)
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		if t.GPU == nil {
			continue
		}
		t.Capacity = slices.Clone(t.Capacity)
		provide(t.Capacity, axes, k.gpus[*t.GPU].Driver, t.GPU.Count)
		t.Labels = k.marked(t.Labels, func(kind *deviceKind) bool { return kind.gpus[*t.GPU] })
	}
	return c
}

// markNode is mark for a node of the cluster, with what its devices hold already.
func (k *deviceKinds) markNode(n *stateNode, out *model.Node, axes model.Axes) {
	if len(k.byText) == 0 {
		return
	}
	if n.awaitsDevices() && len(k.on(n).byDriver) == 0 {
		if len(n.gpus) > 0 {
			provide(out.Allocatable, axes, k.gpus[*n.gpus[0]].Driver, fewest(n.gpus))
		}
		out.Labels = k.marked(out.Labels, func(kind *deviceKind) bool {
			return len(n.gpus) > 0 && !slices.ContainsFunc(n.gpus, func(g *model.GPU) bool { return !kind.gpus[*g] })
		})
		return
	}
	for driver, list := range k.on(n).byDriver {
		provide(out.Allocatable, axes, driver, int64(len(list)))
	}
	for driver, count := range k.on(n).allocated {
		var d devices
		d.take(driver, &DeviceOption{Count: count})
		d.addTo(out.Used, axes)
	}
	out.Labels = k.marked(out.Labels, func(kind *deviceKind) bool { return kind.nodes[n] })
}

// marked are labels with those of the kinds that suit.
func (k *deviceKinds) marked(labels map[string]string, suits func(*deviceKind) bool) map[string]string {
	out := maps.Clone(labels)
	for _, kind := range k.byText { // each has a label of its own: order does not matter
		if kind.problem != "" || !suits(kind) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[kind.label] = "true"
	}
	return out
}

// provide sets the numbers of devices that a machine has.
func provide(v model.Resources, axes model.Axes, driver string, count int64) {
	if i := axes.Index(model.DeviceAxis(driver)); i >= 0 {
		v[i] = count
	}
	if i := axes.Index(model.WholeDeviceAxis(driver)); i >= 0 && count > 0 {
		v[i] = model.WholeDevices
	}
}

// fewest is the least number of GPUs.
func fewest(gpus []*model.GPU) int64 {
	n := gpus[0].Count
	for _, g := range gpus {
		n = min(n, g.Count)
	}
	return n
}
