package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Cluster is an AKS cluster with its agent pools, as "az aks show -o json" prints it, or
// the resource as Azure answers it.
type Cluster struct {
	Name       string            `json:"name"`
	Location   string            `json:"location"`
	Pools      []AgentPool       `json:"agentPoolProfiles"`
	Autoscaler map[string]string `json:"autoScalerProfile"`
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
	Max        int64             `json:"maxCount"`
	Priority   string            `json:"scaleSetPriority"`
	Labels     map[string]string `json:"nodeLabels"`
	Taints     []string          `json:"nodeTaints"`
	Zones      []string          `json:"availabilityZones"`
	MaxPods    int64             `json:"maxPods"`
	DiskGB     int64             `json:"osDiskSizeGB"`
	SubnetID   string            `json:"vnetSubnetID"`
	Tags       map[string]string `json:"tags"`
	FIPS       bool              `json:"enableFIPS"`
	Encryption bool              `json:"enableEncryptionAtHost"`
	GPU        GPUProfile        `json:"gpuProfile"`
	GPUPart    string            `json:"gpuInstanceProfile"`
}

// GPUProfile says what AKS installs for the GPUs of an agent pool.
type GPUProfile struct {
	// Driver is Install, None or empty.
	Driver string `json:"driver"`
	NVIDIA struct {
		// ManagementMode is Managed, Unmanaged or empty.
		ManagementMode string `json:"managementMode"`
	} `json:"nvidia"`
}

// spec is the same as an AKSNodeClass says it, nil where AKS's default holds.
func (g *GPUProfile) spec() map[string]any {
	switch mode := g.NVIDIA.ManagementMode; {
	case strings.EqualFold(g.Driver, "None"):
		return map[string]any{"mode": "None"}
	case mode != "":
		return map[string]any{"nvidia": map[string]any{"managementMode": mode}}
	}
	return nil
}

// Most is how many machines the pool may have.
func (p *AgentPool) Most() int64 {
	if p.Autoscaled {
		return max(p.Max, p.Count)
	}
	return p.Count
}

// ReadCluster reads a cluster with its agent pools.
func ReadCluster(text []byte) (*Cluster, error) {
	var c struct {
		Cluster
		Properties *Cluster `json:"properties"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf(`is not what "az aks show -o json" prints: %w`, err)
	}
	if c.Properties != nil {
		c.Pools, c.Autoscaler = c.Properties.Pools, c.Properties.Autoscaler
	}
	if len(c.Pools) == 0 {
		return nil, fmt.Errorf(`has no agentPoolProfiles: give what "az aks show -o json" prints`)
	}
	c.Location = strings.ToLower(strings.ReplaceAll(c.Location, " ", ""))
	return &c.Cluster, nil
}

// Size is what of a VM size a NodePool is made from.
type Size struct {
	// Family is the letter of the family, Arch amd64 or arm64, VCPUs how many it has.
	Family, Arch string
	VCPUs        int64
	// GPU is the name of its GPU, empty where it has none.
	GPU string
}

// AgentPools makes a NodePool and an AKSNodeClass of every agent pool that runs workloads:
// of its family in place of its one size, so that there is a choice. size describes a VM
// size; false where it is not known. Pools of mode System stay, those of Windows cannot be
// made.
func AgentPools(cluster *Cluster, size func(string) (Size, bool)) (Converted, error) {
	var out Converted
	for i := range cluster.Pools {
		p := &cluster.Pools[i]
		switch {
		case !strings.EqualFold(p.Mode, "User"):
			out.Notes = append(out.Notes, fmt.Sprintf(
				"agent pool %s of mode %s stays as it is: nap itself needs nodes that it does not make", p.Name, p.Mode))
			continue
		case strings.EqualFold(p.OS, "Windows"):
			out.Notes = append(out.Notes, fmt.Sprintf("agent pool %s runs Windows and stays as it is: nap makes no Windows machines", p.Name))
			continue
		}
		is, known := size(p.Size)
		if !known {
			return out, fmt.Errorf("agent pool %s: size %q is not known; see nap catalog", p.Name, p.Size)
		}
		pool, class, notes := p.objects(cluster, is)
		out.Objects = append(out.Objects, class, pool)
		out.Notes = append(out.Notes, notes...)
	}
	return out, nil
}

// objects are the NodePool and the class of an agent pool.
func (p *AgentPool) objects(cluster *Cluster, size Size) (pool, class map[string]any, notes []string) {
	note := func(format string, args ...any) {
		notes = append(notes, "agent pool "+p.Name+": "+fmt.Sprintf(format, args...))
	}
	in := func(key string, values ...string) map[string]any {
		r := map[string]any{}
		set(r, key, "In", values...)
		return r
	}
	capacity := "on-demand"
	if strings.EqualFold(p.Priority, "Spot") {
		capacity = "spot"
	}
	requirements := []any{in("kubernetes.io/arch", size.Arch), in("kubernetes.io/os", "linux"), in("karpenter.sh/capacity-type", capacity)}
	if size.GPU != "" {
		requirements = append(requirements, in(groupAzure+"/sku-gpu-name", size.GPU))
	} else {
		requirements = append(requirements, in(groupAzure+"/sku-family", size.Family))
	}
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
	whole := map[string]any{"spec": template}
	if labels := p.labels(note); len(labels) > 0 {
		whole["metadata"] = map[string]any{"labels": labels}
	}
	if p.GPUPart != "" {
		note("gpuInstanceProfile %s is left out: nap buys whole GPUs, so that a pod which asks for one gets more, "+
			"and as many pods need more machines", p.GPUPart)
	}
	after := cluster.Autoscaler["scale-down-unneeded-time"]
	if after == "" {
		after = cluster.Autoscaler["scaleDownUnneededTime"]
	}
	if after == "" {
		after = "10m" // the cluster autoscaler's own
	}
	pool = map[string]any{
		"apiVersion": versionPools, "kind": kindNodePool, "metadata": map[string]any{"name": p.Name},
		"spec": map[string]any{
			"disruption": map[string]any{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": after},
			"limits":     map[string]any{"cpu": fmt.Sprint(p.Most() * size.VCPUs)},
			"template":   whole,
		},
	}
	return pool, p.class(), notes
}

// taints are those of the pool, as objects.
func (p *AgentPool) taints() []any {
	var out []any
	for _, written := range p.Taints {
		rest, effect, _ := strings.Cut(written, ":")
		key, value, has := strings.Cut(rest, "=")
		taint := map[string]any{"key": key, "effect": effect}
		if has && value != "" {
			taint["value"] = value
		}
		if key != "kubernetes.azure.com/scalesetpriority" { // nap's spot nodes carry none
			out = append(out, taint)
		}
	}
	return out
}

// labels are those of the pool that a NodePool may set.
func (p *AgentPool) labels(note func(string, ...any)) map[string]any {
	out := map[string]any{}
	for key, value := range p.Labels {
		domain, _, _ := strings.Cut(key, "/")
		if domain == "kubernetes.azure.com" || strings.HasSuffix(domain, "kubernetes.io") && domain != "node-restriction.kubernetes.io" {
			note("label %s is left out: AKS or Kubernetes sets labels of that domain", key)
			continue
		}
		out[key] = value
	}
	note("pods that select agentpool=%s or kubernetes.azure.com/agentpool=%s must select karpenter.sh/nodepool=%s instead",
		p.Name, p.Name, p.Name)
	return out
}

// class is the AKSNodeClass of the pool.
func (p *AgentPool) class() map[string]any {
	spec := map[string]any{}
	switch {
	case strings.EqualFold(p.OSSKU, "AzureLinux"), strings.EqualFold(p.OSSKU, "CBLMariner"), strings.EqualFold(p.OSSKU, "Mariner"):
		spec["imageFamily"] = "AzureLinux"
	case strings.EqualFold(p.OSSKU, "Ubuntu2204"):
		spec["imageFamily"] = "Ubuntu2204"
	default:
		spec["imageFamily"] = "Ubuntu"
	}
	const smallest, most = 30, 2048
	if p.DiskGB >= smallest && p.DiskGB <= most {
		spec["osDiskSizeGB"] = p.DiskGB
	}
	if p.MaxPods > 0 {
		spec["maxPods"] = p.MaxPods
	}
	if p.SubnetID != "" {
		spec["vnetSubnetID"] = p.SubnetID
	}
	if len(p.Tags) > 0 {
		tags := map[string]any{}
		for k, v := range p.Tags {
			tags[k] = v
		}
		spec["tags"] = tags
	}
	if p.FIPS {
		spec["fipsMode"] = "FIPS"
	}
	if p.Encryption {
		spec["security"] = map[string]any{"encryptionAtHost": true}
	}
	if gpu := p.GPU.spec(); gpu != nil {
		spec["gpu"] = gpu
	}
	return map[string]any{"apiVersion": versionClasses, "kind": kindClass, "metadata": map[string]any{"name": p.Name}, "spec": spec}
}
