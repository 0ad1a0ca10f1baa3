package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/convert"
	"github.com/nodeautoprovision/nap/internal/document"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// convertCommand is "nap convert" before it runs.
type convertCommand struct {
	streams    command.Streams
	files      []string
	region     string
	agentPools bool
}

func newConvert(s command.Streams) *cobra.Command {
	c := &convertCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Write older NodePools, or agent pools, as today's objects",
		Long: `Write objects of older versions as today's: NodePools of karpenter.sh/v1beta1
and v1alpha5, Provisioners, NodePools of v1 with fields of before, selectors of
AKS's preview (karpenter.k8s.azure/sku-cpu and its like), zones 1, 2 and 3,
AKSNodeClasses of v1alpha2. With --from-agent-pools the files are what "az aks
show -o json" prints, or "az aks nodepool list -o json" with --region, and each
agent pool that runs workloads becomes a NodePool with its AKSNodeClass.

The objects go to standard output. What has changed, what to know of it, and
what can be bought before and after at which price goes to standard error. Each
object is checked as the API server would, by the schemas and rules of the
definitions; what it would refuse, and what cannot be carried over, ends the
command with exit code 1 and nothing on standard output.`,
		Example: `  nap convert -f nodepool.yaml > today.yaml
  kubectl get nodepools.v1beta1.karpenter.sh -o yaml | nap convert -f - --region uksouth | kubectl apply -f -
  az aks show -g rg -n cluster -o json | nap convert --from-agent-pools -f -`,
		Args: noFiles,
		RunE: func(*cobra.Command, []string) error { return c.run() },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&c.files, "filename", "f", nil, "objects to convert: a file, or - for standard input (repeatable)")
	flags.StringVar(&c.region, "region", "",
		"the Azure region, which completes zones and has the prices (default: the cluster's, else prices of "+offline.DefaultRegion+")")
	completeRegion(cmd)
	flags.BoolVar(&c.agentPools, "from-agent-pools", false, "the files are what az aks show or az aks nodepool list prints with -o json")
	return cmd
}

// conversion is what becomes of all files.
type conversion struct {
	objects []map[string]any
	talk    []string // differences, notes and prices, in order
	catalog *fleet.Catalog
	opts    convert.Options
	// forClasses are settings of NodePools that their AKSNodeClasses have today.
	forClasses []convert.ClassSetting
	// found says that some file has an object.
	found bool
}

func (c *convertCommand) run() error {
	if len(c.files) == 0 {
		return errors.New("nothing to convert: give objects with -f FILE")
	}
	region := catalogFlags{region: c.region}
	if err := region.checkRegion(); err != nil {
		return err
	}
	c.region = region.region
	var texts [][]byte
	for _, name := range c.files {
		text, err := c.open(name)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	out := &conversion{opts: convert.Options{Region: c.region}}
	var errs []error
	for i, text := range texts {
		add := out.documents
		if c.agentPools {
			add = out.agentPools
		}
		if err := add(c.files[i], text); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && !out.found {
		errs = append(errs, fmt.Errorf("nothing to convert: %s holds no object: give Kubernetes objects, as kubectl get -o yaml prints them",
			inWords(c.files)))
	}
	if len(errs) == 0 {
		notes, err := convert.IntoClasses(out.objects, out.forClasses)
		out.sayAll(notes)
		errs = append(errs, err)
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, checkAdmission(out.objects))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, text := range out.talk {
		fmt.Fprintln(c.streams.Err, strings.TrimRight(text, "\n"))
	}
	return writeDocuments(c.streams.Out, out.objects)
}

// open reads a file, or standard input.
func (c *convertCommand) open(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.streams.In)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w: give the path of a file, or - for standard input", name, plainPath(err))
	}
	return text, nil
}

// writeDocuments writes objects as YAML documents.
func writeDocuments(w io.Writer, objects []map[string]any) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// sizes is the catalogue of a region, opened once.
func (c *conversion) sizes(region string) (*fleet.Catalog, error) {
	if c.catalog != nil {
		return c.catalog, nil
	}
	source, err := catalogFlags{region: region}.open(map[string]*nodeclass.NodeClass{}, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	c.catalog = source.ForClass("")
	series := map[string]bool{}
	for i := range c.catalog.InstanceTypes {
		if s := c.catalog.InstanceTypes[i].Labels[instancetype.LabelSKUSeries]; s != "" && !series[s] {
			series[s] = true
			c.opts.Series = append(c.opts.Series, s)
		}
	}
	slices.Sort(c.opts.Series)
	return c.catalog, nil
}

// documents converts the documents of a file, Lists included.
func (c *conversion) documents(name string, text []byte) error {
	if _, err := c.sizes(c.opts.Region); err != nil {
		return err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var errs []error
	for n := 1; ; {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", name, n, err)
		}
		values := document.Values(raw)
		if len(values) == 0 {
			n++
		}
		for _, v := range values {
			if err := c.value(v); err != nil {
				errs = append(errs, located(fmt.Sprintf("%s: document %d", name, n), err))
			}
			n++
		}
	}
}

// agentPoolsHint is for what az prints, which is no Kubernetes object.
const agentPoolsHint = "for what az aks show or az aks nodepool list prints with -o json, give --from-agent-pools, too"

// value converts the objects of a value of a file.
func (c *conversion) value(v document.Value) error {
	if v.Err != nil {
		return v.Err
	}
	var o map[string]any
	if err := json.Unmarshal(v.JSON, &o); err != nil {
		return errors.New("is no mapping, as every Kubernetes object is; " + agentPoolsHint)
	}
	switch {
	case len(o) == 0:
		return nil
	case o["apiVersion"] == nil && o["kind"] == nil:
		return errors.New("has no apiVersion and kind, as every Kubernetes object has; " + agentPoolsHint)
	}
	return c.items(o)
}

// items converts an object, or those of a List, which may have lists, too.
func (c *conversion) items(o map[string]any) error {
	list, is := o["items"].([]any)
	if !is || !strings.HasSuffix(fmt.Sprint(o["kind"]), "List") {
		c.found = true
		return c.object(o)
	}
	var errs []error
	for _, item := range list {
		object, is := item.(map[string]any)
		if !is {
			errs = append(errs, errors.New("holds what is no object"))
			continue
		}
		errs = append(errs, c.items(object))
	}
	return errors.Join(errs...)
}

func (c *conversion) object(o map[string]any) error {
	done, err := convert.Object(o, c.opts)
	if err != nil {
		return err
	}
	before, err := yaml.Marshal(o)
	if err != nil {
		return err
	}
	for _, today := range done.Objects {
		after, err := yaml.Marshal(today)
		if err != nil {
			return err
		}
		if diff := convert.Diff(string(before), string(after)); diff != "" {
			c.talk = append(c.talk, diff)
		}
		if today["kind"] == "NodePool" {
			meta, _ := o["metadata"].(map[string]any)
			now, before := c.span(today), c.span(o)
			if now == before {
				c.say("NodePool %v can buy %s, as before", meta["name"], now)
			} else {
				c.say("NodePool %v can buy %s; as it was %s", meta["name"], now, before)
			}
		}
	}
	c.objects = append(c.objects, done.Objects...)
	c.forClasses = append(c.forClasses, done.ForClass...)
	c.sayAll(done.Notes)
	return nil
}

// say adds a sentence to what is said on standard error.
func (c *conversion) say(format string, args ...any) { c.talk = append(c.talk, prose(format, args...)) }

func (c *conversion) sayAll(notes []string) {
	for _, note := range notes {
		c.say("%s", note)
	}
}

// span says in words what the requirements of a NodePool leave.
func (c *conversion) span(o map[string]any) string {
	s := poollint.SpanOf(requirementsOf(o), c.catalog)
	if s.Offerings == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s from %s/h (%s) to %s/h",
		plural(s.Offerings, "offering"), dollars(s.Lowest.Dollars()), s.Size, dollars(s.Highest.Dollars()))
}

// requirementsOf reads the requirements of a NodePool, or of what was one.
func requirementsOf(o map[string]any) model.Requirements {
	var read struct {
		Spec struct {
			Requirements []model.Requirement
			Template     struct {
				Spec struct{ Requirements []model.Requirement }
			}
		}
	}
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return nil
	}
	var out model.Requirements
	for _, r := range append(read.Spec.Requirements, read.Spec.Template.Spec.Requirements...) {
		if r.Validate() == nil {
			out = append(out, r)
		}
	}
	return out
}

// agentPools converts the agent pools of a cluster.
func (c *conversion) agentPools(name string, text []byte) error {
	cluster, err := convert.ReadCluster(text, c.opts.Region)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	catalog, err := c.sizes(cluster.Location)
	if err != nil {
		return err
	}
	c.found = true
	done, err := convert.AgentPools(cluster, func(size string) (convert.Size, bool) { return sizeOf(catalog, size) })
	if err != nil {
		return located(name, err)
	}
	for i := range cluster.Pools {
		if text := c.poolPrices(&cluster.Pools[i], done.Objects); text != "" {
			c.say("%s", text)
		}
	}
	c.objects = append(c.objects, done.Objects...)
	c.sayAll(done.Notes)
	return nil
}

func typeOf(catalog *fleet.Catalog, size string) *model.InstanceType {
	i := slices.IndexFunc(catalog.InstanceTypes, func(t model.InstanceType) bool { return strings.EqualFold(t.Name, size) })
	if i < 0 {
		return nil
	}
	return &catalog.InstanceTypes[i]
}

func sizeOf(catalog *fleet.Catalog, name string) (convert.Size, bool) {
	t := typeOf(catalog, name)
	if t == nil {
		return convert.Size{}, false
	}
	const milli = 1000
	local, _ := strconv.ParseInt(t.Labels[instancetype.LabelSKUEphemeralGB], 10, 64) // no label: none
	return convert.Size{
		EphemeralGB: local,
		Family:      t.Labels[instancetype.LabelSKUFamily], Arch: t.Labels["kubernetes.io/arch"], VCPUs: t.Capacity.Get(model.CPU) / milli,
		GPU:         t.Labels[instancetype.LabelSKUGPUName],
		NamelessGPU: t.Labels[instancetype.LabelSKUGPUManufacturer] != "" && t.Labels[instancetype.LabelSKUGPUName] == "",
	}, true
}

// located says of an error, or of each that it joins, where it was found.
func located(where string, err error) error {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return fmt.Errorf("%s: %w", where, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, located(where, e))
	}
	return errors.Join(errs...)
}

// poolPrices says what the machines of an agent pool cost, and what as many vCPUs and as
// much memory cost at most from its NodePool.
func (c *conversion) poolPrices(p *convert.AgentPool, objects []map[string]any) string {
	capacity := model.OnDemand
	if p.Spot() {
		capacity = model.Spot
	}
	var machines []string
	var cost float64
	least := make(model.Resources, model.Memory+1)
	for _, m := range p.Machines() {
		t := typeOf(c.catalog, m.Size)
		if t == nil {
			return ""
		}
		price := cheapest(t, capacity)
		switch {
		case m.Count == 0:
			continue
		case price == notSold:
			return ""
		}
		machines = append(machines, fmt.Sprintf("%d x %s", m.Count, t.Name))
		cost += price.Dollars() * float64(m.Count)
		least[model.CPU] += m.Count * t.Capacity.Get(model.CPU)
		least[model.Memory] += m.Count * t.Capacity.Get(model.Memory)
	}
	i := slices.IndexFunc(objects, func(o map[string]any) bool {
		meta, _ := o["metadata"].(map[string]any)
		return o["kind"] == "NodePool" && meta["name"] == p.Name
	})
	if i < 0 || len(machines) == 0 {
		return ""
	}
	size, n, price, ok := poollint.CheapestFor(requirementsOf(objects[i]), c.catalog, least, limitOf(objects[i]))
	if !ok {
		return ""
	}
	return fmt.Sprintf("agent pool %s: %s cost %s/h; its NodePool has as much for at most %s/h (%d x %s), and less where pods need less",
		p.Name, strings.Join(machines, " and "), dollars(cost), dollars(price.Dollars()), n, size)
}

// limitOf is how many milli-vCPUs a NodePool may have.
func limitOf(o map[string]any) int64 {
	text, _, err := unstructured.NestedString(o, "spec", "limits", "cpu")
	if err != nil || text == "" {
		return math.MaxInt64
	}
	limit, err := resource.ParseQuantity(text)
	if err != nil {
		return math.MaxInt64
	}
	return limit.MilliValue()
}

// checkAdmission is what an API server with today's definitions would refuse of objects.
func checkAdmission(objects []map[string]any) error {
	a, err := newAdmitter()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		kind := schema.FromAPIVersionAndKind(fmt.Sprint(o["apiVersion"]), fmt.Sprint(o["kind"]))
		if err := errors.Join(a.check(kind, text, nil)...); err != nil {
			meta, _ := o["metadata"].(map[string]any)
			errs = append(errs, fmt.Errorf("%v %v: the API server would refuse it: %s",
				o["kind"], meta["name"], strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	return errors.Join(errs...)
}
