package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// classFields are the fields of an agent pool that its AKSNodeClass has, too.
type classFields struct {
	MaxPods    int64             `json:"maxPods"`
	SubnetID   string            `json:"vnetSubnetID"`
	Tags       map[string]string `json:"tags"`
	FIPS       bool              `json:"enableFIPS"`
	Encryption bool              `json:"enableEncryptionAtHost"`
	GPU        GPUProfile        `json:"gpuProfile"`
	Security   struct {
		SecureBoot bool `json:"enableSecureBoot"`
		VTPM       bool `json:"enableVTPM"`
	} `json:"securityProfile"`
	Streaming struct {
		Enabled bool `json:"enabled"`
	} `json:"artifactStreamingProfile"`
	Kubelet  map[string]any `json:"kubeletConfig"`
	LinuxOS  map[string]any `json:"linuxOSConfig"`
	LocalDNS map[string]any `json:"localDNSProfile"`
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

// imageFamily is the family of an operating system as AKS calls it, lower case; empty where
// no AKSNodeClass has it.
func imageFamily(osSKU string) string {
	return map[string]string{
		"": v1beta1.ImageFamilyUbuntu, "ubuntu": v1beta1.ImageFamilyUbuntu,
		"ubuntu2204": v1beta1.ImageFamilyUbuntu2204, "ubuntu2404": v1beta1.ImageFamilyUbuntu2404,
		"azurelinux": v1beta1.ImageFamilyAzureLinux, "azurelinux3": v1beta1.ImageFamilyAzureLinux,
		"cblmariner": v1beta1.ImageFamilyAzureLinux, "mariner": v1beta1.ImageFamilyAzureLinux, // until 2023
	}[osSKU]
}

// poolClass is the AKSNodeClass of a pool.
func (c *converter) poolClass(p *AgentPool) map[string]any {
	f := &p.Class
	spec := map[string]any{"imageFamily": imageFamily(strings.ToLower(p.OSSKU))}
	switch {
	case spec["imageFamily"] == "":
		c.refuse("osSku: got %q, which no AKSNodeClass has as its imageFamily, allowed: Ubuntu, Ubuntu2204, Ubuntu2404, AzureLinux, "+
			"AzureLinux3; %s", p.OSSKU, instead)
	case strings.EqualFold(p.OSSKU, "AzureLinux3"):
		c.note("osSku AzureLinux3 became imageFamily AzureLinux, which is AzureLinux3 from Kubernetes 1.32 on")
	}
	const smallest, most = 30, 2048
	switch {
	case p.DiskGB >= smallest && p.DiskGB <= most:
		spec["osDiskSizeGB"] = p.DiskGB
	case p.DiskGB != 0: // AKS's default
		c.refuse("osDiskSizeGb: got %d, allowed in an AKSNodeClass: %d to %d; %s", p.DiskGB, smallest, most, instead)
	}
	if f.MaxPods > 0 {
		spec["maxPods"] = f.MaxPods
	}
	if f.SubnetID != "" {
		spec["vnetSubnetID"] = f.SubnetID
	}
	if len(f.Tags) > 0 {
		spec["tags"] = f.Tags
	}
	if f.FIPS {
		spec["fipsMode"] = string(v1beta1.FIPSModeFIPS)
	}
	for name, part := range map[string]map[string]any{
		"security": f.security(), "gpu": f.GPU.spec(), "kubelet": c.kubeletConfig(f.Kubelet), "linuxOSConfig": c.linuxOS(f.LinuxOS),
		"localDNS": c.localDNS(f.LocalDNS),
	} {
		if len(part) > 0 {
			spec[name] = part
		}
	}
	if f.Streaming.Enabled {
		spec["artifactStreaming"] = map[string]any{"enabled": true}
	}
	return map[string]any{"apiVersion": versionClasses, "kind": kindClass, "metadata": map[string]any{"name": p.Name}, "spec": spec}
}

// security is what an AKSNodeClass says of the pool's security.
func (f *classFields) security() map[string]any {
	out, trusted := map[string]any{}, map[string]any{}
	if f.Encryption {
		out["encryptionAtHost"] = true
	}
	if f.Security.SecureBoot {
		trusted["secureBoot"] = true
	}
	if f.Security.VTPM {
		trusted["vtpm"] = true
	}
	if len(trusted) > 0 {
		out["trustedLaunch"] = trusted
	}
	return out
}

// renamed copies the fields of a part of an agent pool under their names in an AKSNodeClass;
// names are by those of AKS in lower case, and empty where the field says nothing of
// machines. path is where the part is, for what it refuses.
func (c *converter) renamed(path string, part map[string]any, names map[string]string) map[string]any {
	out := map[string]any{}
	for field, value := range ordered(part) {
		name, known := names[strings.ToLower(field)]
		switch {
		case value == nil:
		case !known:
			c.lost(path+"."+field, value, "an AKSNodeClass has no field for it")
		case strings.HasSuffix(strings.ToLower(field), "mb"):
			out[name] = fmt.Sprintf("%vMi", value)
		case strings.HasSuffix(strings.ToLower(field), "inseconds"):
			out[name] = fmt.Sprintf("%vs", value)
		case name != "":
			out[name] = value
		}
	}
	return out
}

func (c *converter) kubeletConfig(part map[string]any) map[string]any {
	return c.renamed("kubeletConfig", part, map[string]string{
		"allowedunsafesysctls": "allowedUnsafeSysctls", "containerlogmaxfiles": "containerLogMaxFiles",
		"containerlogmaxsizemb": "containerLogMaxSize", "cpucfsquota": "cpuCFSQuota", "cpucfsquotaperiod": "cpuCFSQuotaPeriod",
		"cpumanagerpolicy": "cpuManagerPolicy", "failswapon": "failSwapOn", "imagegchighthreshold": "imageGCHighThresholdPercent",
		"imagegclowthreshold": "imageGCLowThresholdPercent", "podmaxpids": "podPidsLimit", "topologymanagerpolicy": "topologyManagerPolicy",
	})
}

func (c *converter) linuxOS(part map[string]any) map[string]any {
	out := c.renamed("linuxOsConfig", part, map[string]string{
		"swapfilesizemb": "swapFileSize", "sysctls": "sysctls",
		"transparenthugepagedefrag": "transparentHugePageDefrag", "transparenthugepageenabled": "transparentHugePageEnabled",
	})
	sysctls, _ := out["sysctls"].(map[string]any)
	delete(out, "sysctls")
	if today := c.sysctls(sysctls); len(today) > 0 {
		out["sysctls"] = today
	}
	return out
}

// sysctls are kernel parameters, whose names differ from an AKSNodeClass's in case alone.
func (c *converter) sysctls(part map[string]any) map[string]any {
	var read v1beta1.SysctlConfiguration
	for field, value := range ordered(part) {
		if value == nil {
			continue
		}
		text, err := json.Marshal(map[string]any{field: value})
		if err == nil {
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			err = decoder.Decode(&read)
		}
		if err != nil {
			c.lost("linuxOsConfig.sysctls."+field, value, "an AKSNodeClass has no field for it")
		}
	}
	out := map[string]any{}
	if text, err := json.Marshal(read); err != nil || json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// localDNS is the DNS cache of machines. An AKSNodeClass has all fields of each zone, or no
// DNS cache at all.
func (c *converter) localDNS(part map[string]any) map[string]any {
	const path = "localDnsProfile"
	out := c.renamed(path, part, map[string]string{
		"mode": "mode", "state": "", "kubednsoverrides": "kubeDNSOverrides", "vnetdnsoverrides": "vnetDNSOverrides",
	})
	if out["kubeDNSOverrides"] == nil && out["vnetDNSOverrides"] == nil {
		switch mode := out["mode"]; mode {
		case string(v1beta1.LocalDNSModeRequired):
			c.lost(path+".mode", mode, "an AKSNodeClass needs kubeDNSOverrides and vnetDNSOverrides with it, which the pool does not have")
		case string(v1beta1.LocalDNSModePreferred):
			c.note("%s.mode %s is left out: without overrides, machines run no DNS cache (docs/azure.md)", path, mode)
		}
		return nil
	}
	for _, name := range []string{"kubeDNSOverrides", "vnetDNSOverrides"} {
		zones, _ := out[name].(map[string]any)
		list := []any{}
		for zone, override := range ordered(zones) {
			fields, _ := override.(map[string]any)
			entry := c.renamed(path+"."+name+"."+zone, fields, map[string]string{
				"cachedurationinseconds": "cacheDuration", "forwarddestination": "forwardDestination", "forwardpolicy": "forwardPolicy",
				"maxconcurrent": "maxConcurrent", "protocol": "protocol", "querylogging": "queryLogging", "servestale": "serveStale",
				"servestaledurationinseconds": "serveStaleDuration",
			})
			entry["zone"] = zone
			list = append(list, entry)
		}
		out[name] = list
	}
	return out
}
