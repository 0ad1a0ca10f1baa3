package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Cluster is an AKS cluster with its agent pools, as "az aks show -o json" prints it, or
// the resource as Azure answers it.
type Cluster struct {
	Name       string            `json:"name"`
	Location   string            `json:"location"`
	Pools      []AgentPool       `json:"agentPoolProfiles"`
	Autoscaler map[string]string `json:"autoScalerProfile"`
	// PoolsAlone says that the input had agent pools without their cluster.
	PoolsAlone bool `json:"-"`
}

// AgentPool is an agent pool as far as a NodePool can say the same.
type AgentPool struct {
	Name       string            `json:"name"`
	Mode       string            `json:"mode"`
	OS         string            `json:"osType"`
	OSSKU      string            `json:"osSKU"`
	Size       string            `json:"vmSize"`
	Count      int64             `json:"count"`
	Autoscaled bool              `json:"enableAutoScaling"`
	Least      int64             `json:"minCount"`
	Max        int64             `json:"maxCount"`
	Priority   string            `json:"scaleSetPriority"`
	Labels     map[string]string `json:"nodeLabels"`
	Taints     []string          `json:"nodeTaints"`
	Startup    []string          `json:"nodeInitializationTaints"`
	Zones      []string          `json:"availabilityZones"`
	DiskGB     int64             `json:"osDiskSizeGB"`
	DiskType   string            `json:"osDiskType"`
	UltraSSD   bool              `json:"enableUltraSSD"`
	VMs        struct {
		Scale struct {
			Manual    scales `json:"manual"`
			Autoscale scales `json:"autoscale"`
		} `json:"scale"`
	} `json:"virtualMachinesProfile"`
	// Class is what becomes of the AKSNodeClass.
	Class classFields `json:"-"`
	// fields are all values of the pool by their path, such as securityProfile.sshAccess.
	fields map[string]any
}

// Machines are equal machines of an agent pool.
type Machines struct {
	Size string
	// Count is how many there are, Most how many there may be.
	Count, Most int64
}

// Machines are what the pool has: those of its size, or those of each of its sizes for a
// pool of type VirtualMachines.
func (p *AgentPool) Machines() []Machines {
	if p.Size != "" {
		m := Machines{Size: p.Size, Count: p.Count, Most: p.Count}
		if p.Autoscaled {
			m.Most = max(p.Max, p.Count)
		}
		return []Machines{m}
	}
	var out []Machines
	for _, s := range slices.Concat(p.VMs.Scale.Manual, p.VMs.Scale.Autoscale) {
		if s.Size != "" {
			out = append(out, Machines{s.Size, s.Count, max(s.Count, s.Max)})
		}
	}
	return out
}

// Size is what of a VM size a NodePool is made from.
type Size struct {
	// Family is the letter of the family, Arch amd64 or arm64, VCPUs how many it has.
	Family, Arch string
	VCPUs        int64
	// GPU is the name of its GPU, empty where it has none, or one without a name.
	GPU string
	// NamelessGPU says that it has a GPU which the label of its name does not tell.
	NamelessGPU bool
	// EphemeralGB is the local space for a system disk as its label tells it, 0 where it has none.
	EphemeralGB int64
}

// AgentPools makes a NodePool and an AKSNodeClass of every agent pool that runs workloads:
// of its family in place of its one size, so that there is a choice. size describes a VM
// size; false where it is not known, and the NodePool then has the size itself. Pools of
// another mode than User stay, those of Windows cannot be made. The error joins one for
// every field that cannot be carried over.
func AgentPools(cluster *Cluster, size func(string) (Size, bool)) (Converted, error) {
	var out Converted
	var errs []error
	for i := range cluster.Pools {
		p := &cluster.Pools[i]
		if why := p.stays(); why != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("agent pool %s %s", p.Name, why))
			continue
		}
		c := &converter{name: "agent pool " + p.Name}
		pool, class := c.agentPool(p, cluster, size)
		errs = append(errs, c.errs...)
		out.Objects = append(out.Objects, class, pool)
		out.Notes = append(out.Notes, c.notes...)
	}
	if cluster.PoolsAlone && slices.ContainsFunc(cluster.Pools, func(p AgentPool) bool { return p.Autoscaled }) {
		out.Notes = append(out.Notes, "consolidateAfter is "+unneeded+", the cluster autoscaler's default: "+
			`what the cluster has instead is in "az aks show -o json" alone`)
	}
	if len(errs) > 0 {
		return Converted{}, errors.Join(errs...)
	}
	return out, nil
}

// stays says why a pool is not converted, empty where it is.
func (p *AgentPool) stays() string {
	const windows = "Windows"
	switch {
	case strings.EqualFold(p.Mode, "System"):
		return "of mode System stays as it is: nap itself needs nodes that it does not make"
	case p.Mode != "" && !strings.EqualFold(p.Mode, "User"):
		return "of mode " + p.Mode + " stays as it is: nap makes machines of pools that run workloads"
	case strings.EqualFold(p.OS, windows), len(p.OSSKU) >= len(windows) && strings.EqualFold(p.OSSKU[:len(windows)], windows):
		return "runs Windows and stays as it is: nap makes no Windows machines"
	}
	return ""
}

// unneeded is how long a node of the cluster autoscaler is unneeded before it goes, unless
// the cluster says otherwise.
const unneeded = "10m"

// agentPool makes the NodePool and the class of an agent pool.
func (c *converter) agentPool(p *AgentPool, cluster *Cluster, size func(string) (Size, bool)) (pool, class map[string]any) {
	archs, sizes, limits := c.sizes(p.Machines(), size)
	capacity := "on-demand"
	if p.Spot() {
		capacity = "spot"
	}
	requirements := slices.Concat(archs,
		[]any{in("kubernetes.io/os", "linux"), in("karpenter.sh/capacity-type", capacity)}, sizes, disks(c, p, size))
	if len(p.Zones) > 0 {
		zones := slices.Clone(p.Zones)
		for i, z := range zones {
			if !strings.Contains(z, "-") {
				zones[i] = cluster.Location + "-" + z
			}
		}
		requirements = append(requirements, in("topology.kubernetes.io/zone", zones...))
	}
	template := map[string]any{
		"nodeClassRef": map[string]any{"group": groupAzure, "kind": kindClass, "name": p.Name},
		"requirements": requirements, "expireAfter": "Never",
	}
	if taints := p.taints(); len(taints) > 0 {
		template["taints"] = taints
	}
	if len(p.Startup) > 0 {
		template["startupTaints"] = taintsOf(p.Startup)
	}
	whole := map[string]any{"spec": template}
	if labels := c.poolLabels(p); len(labels) > 0 {
		whole["metadata"] = map[string]any{"labels": labels}
	}
	if p.Autoscaled && p.Least > 0 {
		c.note("minCount %d is left out: nap keeps no machine that no pod needs; a CapacityBuffer keeps room (docs/buffers.md)", p.Least)
	}
	after := cmp.Or(cluster.Autoscaler["scale-down-unneeded-time"], cluster.Autoscaler["scaleDownUnneededTime"], unneeded)
	pool = map[string]any{
		"apiVersion": versionPools, "kind": kindNodePool, "metadata": map[string]any{"name": p.Name},
		"spec": map[string]any{
			"disruption": map[string]any{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": after},
			"limits":     limits,
			"template":   whole,
		},
	}
	c.otherFields(p)
	return pool, c.poolClass(p)
}

// in is a requirement with operator In.
func in(key string, values ...string) map[string]any {
	r := map[string]any{}
	set(r, key, "In", values...)
	return r
}

// sizesOf is what some machines have in common, each value once.
type sizesOf struct {
	names, families, gpus, archs, unknown []string
	vcpus, most                           int64
	nameless                              []string
}

func (s *sizesOf) add(m Machines, size func(string) (Size, bool)) {
	once := func(list *[]string, value string) {
		if value != "" && !slices.Contains(*list, value) {
			*list = append(*list, value)
		}
	}
	is, known := size(m.Size)
	if !known {
		once(&s.unknown, m.Size)
	}
	once(&s.names, m.Size)
	once(&s.archs, is.Arch)
	if is.GPU == "" {
		once(&s.families, is.Family)
	}
	once(&s.gpus, is.GPU)
	if is.NamelessGPU {
		once(&s.nameless, m.Size)
	}
	s.vcpus += m.Most * is.VCPUs
	s.most += m.Most
}

// sizes are the requirements and limits that machines of some sizes become: their
// families or GPUs, or the sizes themselves where not all of them are known, they have
// nothing in common, or no label tells their GPU.
func (c *converter) sizes(machines []Machines, size func(string) (Size, bool)) (archs, sizes []any, limits map[string]any) {
	const bySize = "node.kubernetes.io/instance-type"
	var all sizesOf
	for _, m := range machines {
		all.add(m, size)
	}
	switch {
	case len(machines) == 0:
		c.refuse("vmSize: got nothing, and virtualMachinesProfile.scale has no size either: give the pool as az aks show -o json prints it")
	case len(all.unknown) > 0:
		for _, s := range all.unknown {
			c.note("size %s is not in the built-in table: the NodePool buys that size in place of its family, "+
				"has no requirement on kubernetes.io/arch, spec.limits counts nodes and not vCPUs, and no price is told", s)
		}
		sizes, limits = []any{in(bySize, all.names...)}, map[string]any{"nodes": strconv.FormatInt(all.most, 10)}
	default:
		archs, limits = []any{in("kubernetes.io/arch", all.archs...)}, map[string]any{"cpu": strconv.FormatInt(all.vcpus, 10)}
		switch {
		case len(all.nameless) > 0:
			c.note("%s: no label tells the name of its GPU: the NodePool buys that size in place of its family, which has other GPUs, too",
				strings.Join(all.nameless, ", "))
			sizes = []any{in(bySize, all.names...)}
		case len(all.gpus) == 0:
			sizes = []any{in(groupAzure+"/sku-family", all.families...)}
		case len(all.families) == 0:
			sizes = []any{in(groupAzure+"/sku-gpu-name", all.gpus...)}
		default:
			sizes = []any{in(bySize, all.names...)}
		}
	}
	if len(machines) > 0 && all.most == 0 {
		c.note("count 0 without autoscaling became spec.limits of 0: the NodePool buys nothing until you raise it")
	}
	return archs, sizes, limits
}

// disks are the requirements on sizes that the disks of the pool come to.
func disks(c *converter, p *AgentPool, size func(string) (Size, bool)) []any {
	const usual = 128 // GB of a class that states none
	var out []any
	if strings.EqualFold(p.DiskType, "Ephemeral") {
		out = ephemeral(c, p, cmp.Or(p.DiskGB, usual), size)
	}
	if p.UltraSSD {
		out = append(out, in(groupAzure+"/sku-storage-ultra-ssd", "true"))
	}
	return out
}

// ephemeral is the requirement that the system disk fits into the local space of sizes, as far as the
// pool's own sizes meet it: a NodePool that cannot buy these may buy nothing at all.
func ephemeral(c *converter, p *AgentPool, disk int64, size func(string) (Size, bool)) []any {
	const label = groupAzure + "/sku-storage-ephemeralos-maxsize"
	least, of := disk, ""
	for _, m := range p.Machines() {
		if is, known := size(m.Size); known && is.EphemeralGB < least {
			least, of = is.EphemeralGB, m.Size
		}
	}
	if of != "" {
		became := "left out"
		if least > 0 {
			became = fmt.Sprintf("lowered to Gt %d", least-1)
		}
		c.note("osDiskType Ephemeral: for a disk of %d GB, size %s has %d GB of local space in the built-in table: the requirement on %s is %s; "+
			"where the disk does not fit, it is a managed one and billed", disk, of, least, label, became)
	}
	if least == 0 {
		return nil
	}
	r := map[string]any{}
	set(r, label, "Gt", strconv.FormatInt(least-1, 10))
	return []any{r}
}

// Spot reports whether the pool has spot machines.
func (p *AgentPool) Spot() bool { return strings.EqualFold(p.Priority, "Spot") }

// taints are those of the pool's nodes, as objects. AKS puts one on every spot node,
// whether the pool lists it or not; nap puts none there that its NodePool does not have.
func (p *AgentPool) taints() []any {
	const spot = "kubernetes.azure.com/scalesetpriority"
	listed := p.Taints
	if p.Spot() && !slices.ContainsFunc(listed, func(t string) bool { return strings.HasPrefix(t, spot) }) {
		listed = append(slices.Clone(listed), spot+"=spot:NoSchedule")
	}
	return taintsOf(listed)
}

// taintsOf reads taints that are written as key=value:Effect.
func taintsOf(list []string) []any {
	var out []any
	for _, written := range list {
		rest, effect, _ := strings.Cut(written, ":")
		key, value, _ := strings.Cut(rest, "=")
		taint := map[string]any{"key": key, "effect": effect}
		if value != "" {
			taint["value"] = value
		}
		out = append(out, taint)
	}
	return out
}

// poolLabels are the labels of the pool that a NodePool may set; nap sets those of AKS itself.
func (c *converter) poolLabels(p *AgentPool) map[string]any {
	out := map[string]any{}
	for key, value := range ordered(p.Labels) {
		domain, _, _ := strings.Cut(key, "/")
		if domain == "kubernetes.azure.com" || strings.HasSuffix(domain, "kubernetes.io") && domain != "node-restriction.kubernetes.io" {
			c.note("label %s is left out: AKS or Kubernetes sets labels of that domain", key)
			continue
		}
		out[key] = value
	}
	c.note("pods that select agentpool=%s or kubernetes.azure.com/agentpool=%s must select karpenter.sh/nodepool=%s instead",
		p.Name, p.Name, p.Name)
	return out
}
