package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// inputFlags say what is planned for: files, a live cluster, or both.
type inputFlags struct {
	catalogFlags
	files   []string
	cluster command.Cluster
	// partial answers where not all may be listed.
	partial bool
	// already is what was read before; nil where nothing was.
	already *planInput
	// due plans CronJobs as if their time had come.
	due bool
	// scheduler is a file with what the cluster's scheduler does; empty for none.
	scheduler string
}

func (f *inputFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "objects to plan for: a file, a folder, or - for standard input (repeatable)")
	f.cluster.Add(flags)
	flags.BoolVar(&f.due, "due", false, "plan the CronJobs of files as if their time had come")
	flags.StringVar(&f.scheduler, "scheduler-config", "",
		"a file with the default spread constraints of the cluster's scheduler, as the controller's setting has them")
	f.catalogFlags.add(cmd)
}

func (f *catalogFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.region, "region", "",
		"Azure region of the prices (default: the region of the nodes, or of the zones that are named, or "+offline.DefaultRegion+")")
	completeRegion(cmd)
	cmd.Flags().StringVar(&f.prices, "prices-file", "", "what you pay: negotiated prices, discounts, costs per node (docs/prices.md)")
	cmd.Flags().StringVar(&f.file, "catalog", "", "plan against this catalogue instead, in the form that nap catalog -o json prints")
}

// nodeClassKind is the kind of the node classes that nap buys by.
const nodeClassKind = "AKSNodeClass"

// added are objects that were put into the input.
type added struct {
	// assumed are those that it lacked.
	assumed []client.Object
	// due are the CronJobs in whose place their Jobs are, as NAMESPACE/NAME.
	due map[string]bool
}

// planInput is what was read, ready to be stated as a problem.
type planInput struct {
	store *fleet.Store
	// spread gives spread constraints to pods without; nil for none.
	spread *kube.DefaultSpread
	// manifests are the objects of the files.
	manifests []kube.Manifest
	// objects are all objects, as a cluster holds them.
	objects kube.Objects
	pools   map[string]*v1.NodePool
	classes map[string]*nodeclass.NodeClass
	region  string
	// overlays are the NodeOverlays that were read.
	overlays overlayInput
	// told is what the controller of the live cluster tells; nil for files alone.
	told  *told
	added added
	// notes are for the reader's eyes, problems are objects that were refused.
	notes    []string
	problems []error
	// refusedPools are the NodePools among them.
	refusedPools []refusedPool
	// unread are objects that could not be read; admit makes problems of them.
	unread []*kube.Unread
	// quotas are the ResourceQuotas of the files and of the cluster, and what they have held back.
	quotas *kube.Quotas
}

// release forgets the objects as they were read, but for the nodes: they take as much memory as the
// plan of many a file. What is planned for is in the store, NodePools and their classes stay; only
// what speaks of single pods, or hands them to another planner, needs more.
func release(p *planInput) {
	nodes := kube.ObjectsOf(slices.DeleteFunc(p.objects.Distinct(), func(o client.Object) bool {
		_, is := o.(*corev1.Node)
		return !is
	}))
	p.manifests, p.objects = nil, nodes
}

// live reports whether a live cluster is read: one that flags choose, or without files the
// one that kubectl would take.
func (f *inputFlags) live() bool {
	return f.cluster.Chosen() || len(f.files) == 0 && f.cluster.Found()
}

// read collects all objects. What is wrong with single objects is kept in
// problems; only unreadable files and clusters end it.
func (f *inputFlags) read(ctx context.Context, in io.Reader) (*planInput, error) {
	if f.already != nil {
		return f.already, nil
	}
	if err := f.checkRegion(); err != nil {
		return nil, err
	}
	if len(f.files) == 0 && !f.live() {
		return nil, fmt.Errorf("nothing to plan for%s: give objects with -f FILE, or a live cluster with --kubeconfig, --context or KUBECONFIG",
			command.LostKubeconfig())
	}
	p := &planInput{store: fleet.NewStore(), pools: map[string]*v1.NodePool{}, classes: map[string]*nodeclass.NodeClass{}}
	var err error
	if p.spread, err = defaultSpread(f.scheduler); err != nil {
		return nil, err
	}
	live := f.live()
	if live {
		if err := p.readCluster(ctx, &f.cluster, f.partial); err != nil {
			return nil, err
		}
	}
	for _, name := range f.files {
		if err := p.readPath(name, in); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil { // standard input has ended with it
		return nil, err
	}
	if !live && len(p.manifests)+len(p.unread)+len(p.problems) == 0 {
		return nil, fmt.Errorf("nothing to plan for: %s holds no object: give Kubernetes objects, as kubectl get -o yaml prints them",
			inWords(f.files))
	}
	if f.due {
		p.startCronJobs()
	}
	p.addManifests(f.file == "")
	p.assumeStorageClasses(f.file == "" && !live)
	p.noteGated()
	p.noteSafeToEvict()
	p.noteUnrequested()
	p.completePools(live, f.file == "")
	switch {
	case f.region != "" || f.file != "":
		p.region = f.region
		if note := f.otherRegion(&p.objects); note != "" {
			p.notes = append(p.notes, note)
		}
	case p.region == "":
		p.region = regionOfZones(zonesNamed(&p.objects, p.pools))
	}
	return p, nil
}

// defaultSpread reads the file that --scheduler-config names.
func defaultSpread(file string) (*kube.DefaultSpread, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--scheduler-config %s: %w: give the path of a file with podTopologySpread.defaultConstraints",
			file, plainPath(err))
	}
	config, err := karpoptions.ParseSchedulerConfiguration(string(text))
	if err != nil {
		return nil, fmt.Errorf("--scheduler-config %s: %w", file, err)
	}
	if config == nil || config.PodTopologySpread == nil {
		return nil, fmt.Errorf("--scheduler-config %s: has no podTopologySpread.defaultConstraints", file)
	}
	return kube.NewDefaultSpread(config.PodTopologySpread.DefaultConstraints), nil
}

// mirror writes to the store as files are read.
func (p *planInput) mirror(store *fleet.Store) *kube.Mirror {
	return kube.NewMirror(store, kube.Settings{
		EveryPod: true, Spread: p.spread, IgnoreClaims: p.claimsIgnored(), Manages: p.told.manages(),
	})
}

// claimsIgnored reports whether the controller of the live cluster leaves pods with resource
// claims alone.
func (p *planInput) claimsIgnored() bool {
	return p.told != nil && p.told.document != nil && !p.told.document.ResourceClaims
}

// spreadByDefault are objects whose pods have the constraints that they get.
func (p *planInput) spreadByDefault(objects []client.Object) []client.Object {
	out := slices.Clone(objects)
	for i, o := range out {
		if pod, is := o.(*corev1.Pod); is {
			out[i] = p.spread.Give(pod)
		}
	}
	return out
}

// outsidePools reports whether a node is of none of the NodePools that were read. Its label may
// name one that is gone.
func outsidePools(pools map[string]*v1.NodePool, node *corev1.Node) bool {
	return pools[node.Labels[v1.NodePoolLabelKey]] == nil
}

// source opens the catalogue for the pools that were read.
func (p *planInput) source(ctx context.Context, f catalogFlags) (*offline.Source, error) {
	f.region, f.advance, f.machines, f.cluster = p.region, !f.listed, p.onDemand(), clusterOf(p.store.Snapshot())
	if p.told != nil && p.told.document != nil {
		f.told = p.told
		if f.region == "" {
			f.region = p.told.document.Status.Region
		}
	}
	s, err := f.open(p.classes, func(nodePool string) string {
		if np := p.pools[nodePool]; np != nil && np.Spec.Template.Spec.NodeClassRef != nil {
			return np.Spec.Template.Spec.NodeClassRef.Name
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	return s, p.applyOverlays(ctx, s)
}

// clusterOf is what the nodes of a cluster say of it by the label that AKS gives all of them, or else
// what NodePools or pods take it for, or "".
func clusterOf(now *fleet.Snapshot) string {
	for node := range now.Nodes() {
		if cluster := node.Labels[instancetype.LabelAKSCluster]; cluster != "" {
			return cluster
		}
	}
	named := func(rs model.Requirements) string {
		for i := range rs {
			if rs[i].Key == instancetype.LabelAKSCluster && rs[i].Operator == model.In && len(rs[i].Values) > 0 {
				return rs[i].Values[0]
			}
		}
		return ""
	}
	for _, pool := range now.Pools() {
		if cluster := named(pool.Requirements); cluster != "" {
			return cluster
		}
	}
	for pod := range now.Pods() {
		cluster := named(pod.Spec.NodeRequirements)
		for _, rs := range pod.Spec.NodeAlternatives {
			cluster = cmp.Or(cluster, named(rs))
		}
		if cluster != "" {
			return cluster
		}
	}
	return ""
}

// onDemand are the on-demand machines of NodePools, which use up what is paid in advance, as the
// controller counts them: sizes by the name of the NodeClaim, or of a node without one.
func (p *planInput) onDemand() map[string]string {
	out, known := map[string]string{}, map[string]bool{}
	now := p.store.Snapshot()
	note := func(name string, labels map[string]string) {
		if size := labels[model.LabelInstanceType]; size != "" && labels[model.LabelCapacityType] == string(model.OnDemand) {
			out[name] = size
		}
	}
	for claim := range now.AllClaims() {
		known[claim.NodeName] = true
		if claim.ProviderID != "" && !claim.Terminating {
			note(claim.Name, claim.Labels)
		}
	}
	for node := range now.Nodes() {
		if node.Labels[v1.NodePoolLabelKey] != "" && !known[node.Name] {
			note(node.Name, node.Labels)
		}
	}
	return out
}

// gzipMagic is how a compressed file begins.
const gzipMagic = "\x1f\x8b"

// startCronJobs puts the Jobs of CronJobs in their place.
func (p *planInput) startCronJobs() {
	p.added.due = map[string]bool{}
	for i := range p.manifests {
		if job := kube.Due(p.manifests[i].Object); job != nil {
			p.manifests[i].Object = job
			p.added.due[job.GetNamespace()+"/"+job.GetName()] = true
		}
	}
}

// addManifests takes what the files hold. With the built-in catalogue, NodePools must
// speak of Azure's labels; another catalogue has labels of its own.
func (p *planInput) addManifests(builtIn bool) {
	seen := map[string]string{}
	p.admit(builtIn)
	p.noteIgnored()
	kept := p.manifests[:0]
	for _, m := range p.manifests {
		key := func() string { return m.Object.GetObjectKind().GroupVersionKind().String() + " " + m.Name() }
		for n := 2; m.Generated && seen[key()] != ""; n++ { // of another file
			m.Object.SetName(fmt.Sprint(m.Object.GetGenerateName(), n))
		}
		if first, twice := seen[key()]; twice {
			p.refuse(fmt.Errorf("%s: %s: is also in %s, names must be unique", m.Source, m.Name(), first))
			continue
		}
		seen[key()] = m.Source
		kept = append(kept, m)
	}
	p.manifests = kept
	expanded := kube.Expand(p.manifests, p.objects.List()...)
	for _, err := range expanded.Problems {
		p.refuse(err)
	}
	p.notes, p.quotas = append(p.notes, expanded.Notes...), expanded.Quotas
	for i := range p.manifests {
		p.spread.Learn(p.manifests[i].Object)
	}
	mirror := p.mirror(p.store)
	p.objects.Remove(expanded.Replaced)
	for pod := range expanded.Replaced {
		mirror.Delete(pod)
	}
	for _, o := range expanded.Objects.Distinct() {
		p.remember(o)
	}
	p.objects.Append(expanded.Objects)
	mirror.ApplyAll(expanded.Objects)
	p.keepRefusedPools()
	for _, name := range slices.Sorted(maps.Keys(p.pools)) {
		if note := longName(name); note != "" {
			p.notes = append(p.notes, note)
		}
		for _, budget := range kube.Pool(p.pools[name]).Disruption.Unreadable {
			p.notes = append(p.notes, fmt.Sprintf("NodePool %s: %s: it lets no node be removed", name, budget))
		}
	}
}

// assumeStorageClasses adds the storage classes of AKS, where files leave them out and stand for a
// cluster of Azure, and tells of claims whose disk may be in any zone.
func (p *planInput) assumeStorageClasses(alone bool) {
	objects := p.objects.Distinct()
	var classes []*storagev1.StorageClass
	var note string
	if alone {
		classes, note = assumedStorageClasses(objects)
	}
	mirror := p.mirror(p.store)
	for _, class := range classes {
		mirror.Apply(class)
		p.added.assumed = append(p.added.assumed, class)
	}
	p.notes = slices.DeleteFunc(append(p.notes, note, openZones(objects)), func(note string) bool { return note == "" })
}

// mostIgnored is how many ignored fields are told one by one.
const mostIgnored = 5

// noteIgnored tells of fields that no kind has: mostly they are typing errors,
// and the plan is then not for what was meant.
func (p *planInput) noteIgnored() {
	total := 0
	for i := range p.manifests {
		for _, field := range p.manifests[i].Ignored {
			if total++; total <= mostIgnored {
				p.notes = append(p.notes, fmt.Sprintf("%s: %s: %s, ignored", p.manifests[i].Source, p.manifests[i].Name(), field))
			}
		}
	}
	if total > mostIgnored {
		p.notes = append(p.notes, plural(total-mostIgnored, "more such thing")+" ignored")
	}
}

// podNamed is a pod among objects, nil where it is none of them.
func podNamed(objects kube.Objects, ref model.PodRef) *corev1.Pod {
	for o := range objects.All() {
		if pod, is := o.(*corev1.Pod); is && pod.Name == ref.Name && pod.Namespace == ref.Namespace {
			return pod
		}
	}
	return nil
}

// noteGated tells of pods that no scheduler looks at yet.
func (p *planInput) noteGated() {
	n, first := 0, ""
	for o, alike := range p.objects.Counted() {
		if pod, is := o.(*corev1.Pod); is && len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName == "" {
			first = cmp.Or(first, pod.Namespace+"/"+pod.Name)
			n += alike
		}
	}
	if n > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s with scheduling gates left out, the first is %s", plural(n, "pod"), first))
	}
}

// noteSafeToEvict tells of pods which the Cluster Autoscaler does not evict, but nap does.
func (p *planInput) noteSafeToEvict() {
	const autoscaler = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	n, first := 0, ""
	for o, alike := range p.objects.Counted() {
		pod, is := o.(*corev1.Pod)
		if is && pod.Annotations[autoscaler] == "false" && pod.Annotations[v1.DoNotDisruptAnnotationKey] == "" {
			first = cmp.Or(first, pod.Namespace+"/"+pod.Name)
			n += alike
		}
	}
	if n > 0 {
		p.notes = append(p.notes, fmt.Sprintf(`%s with the annotation %s: "false", which has no effect in nap, the first is %s; `+
			`%s: "true" takes its place`, plural(n, "pod"), autoscaler, first, v1.DoNotDisruptAnnotationKey))
	}
}

// noteUnrequested tells of waiting pods that ask for neither cpu nor memory: they are
// packed as if they needed none.
func (p *planInput) noteUnrequested() {
	n, first := 0, ""
	for pod := range p.store.Snapshot().Pods() {
		r := &pod.Spec.Requests
		if pod.Node != "" || pod.Terminal || pod.Terminating || r.CPU > 0 || r.Memory > 0 || pod.Gated {
			continue
		}
		if n++; first == "" || pod.Ref.String() < first {
			first = pod.Ref.String()
		}
	}
	if n > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s without requests for cpu and memory packed as if free, the first is %s",
			plural(n, "pod"), first))
	}
}

// noteClasses tells of node classes that NodePools name and the input lacks, since
// the plan is then for what is usual.
func (p *planInput) noteClasses() {
	var absent, foreign, others []string
	for _, name := range slices.Sorted(maps.Keys(p.pools)) {
		ref := p.pools[name].Spec.Template.Spec.NodeClassRef
		switch {
		case ref == nil:
		case kube.CheckManaged(p.pools[name]) != nil && p.told.manages() != nil:
			others = append(others, fmt.Sprintf("%s (%s)", name, classKind(ref)))
		case kube.CheckManaged(p.pools[name]) != nil:
			foreign = append(foreign, fmt.Sprintf("%s (%s)", name, classKind(ref)))
		case p.classes[ref.Name] == nil && !slices.Contains(absent, ref.Name):
			absent = append(absent, ref.Name)
		}
	}
	if len(others) > 0 {
		p.notes = append(p.notes, "left out, for it is not nap's: NodePool "+strings.Join(others, ", "))
	}
	if len(foreign) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("planned as if of kind %s: NodePool %s", nodeClassKind, strings.Join(foreign, ", ")))
	}
	if len(absent) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("not in the input, planned with defaults: %s %s", nodeClassKind, strings.Join(absent, ", ")))
	}
}

// classKind is the kind of a node class, with its group where the kind alone is as that of nap's.
func classKind(ref *v1.NodeClassReference) string {
	if ref.Kind == nodeClassKind {
		return ref.Kind + " of " + ref.Group
	}
	return ref.Kind
}

// note adds an object.
func (p *planInput) note(o client.Object) {
	p.objects.Add(o)
	p.remember(o)
}

// remember keeps what planning needs of an object beside the mirror.
func (p *planInput) remember(o client.Object) {
	switch o := o.(type) {
	case *v1.NodePool:
		p.pools[o.Name] = o
	case *v1alpha1.NodeOverlay:
		p.overlays.note(o, false)
	case *corev1.Node:
		if region := o.Labels[corev1.LabelTopologyRegion]; p.region == "" {
			p.region = region
		}
	case *unstructured.Unstructured:
		if o.GetKind() != nodeClassKind || !strings.HasPrefix(o.GetAPIVersion(), "karpenter.azure.com/") {
			return
		}
		class, err := offline.ReadNodeClass(o)
		if err != nil {
			p.refuse(fmt.Errorf("AKSNodeClass %s: %w", o.GetName(), err))
			return
		}
		p.classes[class.Name] = class
	}
}

// completePools adds the default NodePool where files have none, or tells which node
// classes of the NodePools are missing; those matter to the built-in catalogue alone. A
// live cluster without NodePools buys nothing, and neither does its plan.
func (p *planInput) completePools(live, builtIn bool) {
	switch {
	case len(p.pools) > 0 && builtIn:
		p.noteClasses()
	case len(p.pools) == 0 && !live && !p.refusedNodePool():
		p.addDefaultPool()
	}
}

// refusedNodePool reports whether a NodePool is among what was refused: then no other
// one is planned with in its place.
func (p *planInput) refusedNodePool() bool { return len(p.refusedPools) > 0 }

// addDefaultPool adds the NodePool that AKS creates by default.
func (p *planInput) addDefaultPool() {
	p.notes = append(p.notes, "no NodePool in the input: "+offline.NodePoolNote)
	for _, o := range kube.Expand([]kube.Manifest{{Source: "the default NodePool", Object: offline.DefaultNodePool()}}).Objects.Distinct() {
		p.note(o)
		p.mirror(p.store).Apply(o)
	}
}

// harmless kinds matter to pods of files alone, essential ones to every answer.
var (
	harmless = []string{
		"RuntimeClasses", "PriorityClasses", "NodeOverlays", "DeviceClasses", "ResourceClaims", "ResourceClaimTemplates", "ResourceSlices",
		"ResourceQuotas", "StatefulSets",
	}
	essential = []string{"Pods", "Nodes"}
)
