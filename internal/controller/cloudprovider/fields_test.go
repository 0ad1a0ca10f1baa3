package cloudprovider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// field is what becomes of one field of the class: a text that must be in what
// Azure is told because of it.
type field struct {
	spec string // the class's spec with the field set, as JSON
	aks  string // in the AKS machine's body
	vm   string // in the bodies of virtual machine and interface, or its boot data
	node string // instead of vm: PATH=VALUE in the boot data, keys separated by slashes, the value in JSON
	size string // bought, where the field means something to this size alone
}

// fields has a row for every field of the class, by its path.
func fields(subnet string) map[string]field {
	out := map[string]field{
		"vnetSubnetID": {
			spec: `{"vnetSubnetID": "` + subnet + `"}`, aks: `"network":{"vnetSubnetID":"` + subnet + `"}`, vm: `"subnet":{"id":"` + subnet + `"}`,
		},
		"osDiskSizeGB": {spec: `{"osDiskSizeGB": 333}`, aks: `"osDiskSizeGB":333`, vm: `"diskSizeGB":333`},
		"imageFamily":  {spec: `{"imageFamily": "AzureLinux"}`, aks: `"osSKU":"AzureLinux"`, vm: "/galleries/AKSAzureLinux/images/V3gen2/"},
		"imageVersion": {spec: `{"imageVersion": "202606.02.0"}`,
			aks: `"nodeImageVersion":"AKSUbuntu-2404gen2containerd-202606.02.0"`, vm: "/images/2404gen2containerd/versions/202606.02.0"},
		"fipsMode": {spec: `{"fipsMode": "FIPS"}`, aks: `"enableFIPS":true`, vm: "/images/2004gen2fipscontainerd/"},
		"tags":     {spec: `{"tags": {"cost/center": "42"}}`, aks: `"cost_center":"42"`, vm: `"cost_center":"42"`},
		"maxPods":  {spec: `{"maxPods": 77}`, aks: `"maxPods":77`, vm: `"--max-pods":"77"`},

		"security.encryptionAtHost": {
			spec: `{"security": {"encryptionAtHost": true}}`, aks: `"enableEncryptionAtHost":true`, vm: `"encryptionAtHost":true`,
		},
		"security.trustedLaunch.vtpm": {
			spec: `{"security": {"trustedLaunch": {"vtpm": true}}}`, aks: `"enableVTPM":true`, vm: `"vTpmEnabled":true`,
		},
		"security.trustedLaunch.secureBoot": {
			spec: `{"security": {"trustedLaunch": {"secureBoot": true}}}`, aks: `"enableSecureBoot":true`, vm: `"secureBootEnabled":true`,
		},
		"gpu.mode": {spec: `{"gpu": {"mode": "None"}}`, aks: `"gpuProfile":{"driver":"None"}`,
			vm: `"config_gpu_driver":false`, size: "Standard_NC6s_v3"},
		"gpu.nvidia.managementMode": {spec: `{"gpu": {"nvidia": {"managementMode": "Managed"}}}`,
			aks: `"gpuProfile":{"driver":"Install","nvidia":{"managementMode":"Managed"}}`,
			vm:  `"enable_managed_gpu":true`, size: "Standard_NC6s_v3"},
		"artifactStreaming.enabled": {spec: `{"artifactStreaming": {"enabled": true}}`,
			aks: `"artifactStreamingProfile":{"enabled":true}`, vm: `"enable_artifact_streaming":true`},

		"localDNS.mode": {spec: `{"localDNS": {"mode": "Required"}}`, aks: `"localDNSProfile":{"mode":"Required"}`,
			node: "local_dns_profile/enable_local_dns=true"},

		"linuxOSConfig.swapFileSize": {
			spec: `{"linuxOSConfig": {"swapFileSize": "1500Mi"}, "kubelet": {"failSwapOn": false}}`, aks: `"swapFileSizeMB":1500`,
			node: "custom_linux_os_config/swap_file_size=1500",
		},
		"linuxOSConfig.transparentHugePageEnabled": {
			spec: `{"linuxOSConfig": {"transparentHugePageEnabled": "madvise"}}`, aks: `"transparentHugePageEnabled":"madvise"`,
			node: `custom_linux_os_config/transparent_hugepage_support="madvise"`,
		},
		"linuxOSConfig.transparentHugePageDefrag": {spec: `{"linuxOSConfig": {"transparentHugePageDefrag": "defer+madvise"}}`,
			aks: `"transparentHugePageDefrag":"defer+madvise"`, node: `custom_linux_os_config/transparent_defrag="defer+madvise"`},
	}
	kubelet := func(name, value, aks, vm string) {
		out["kubelet."+name] = field{spec: `{"kubelet": {"` + name + `": ` + value + `}}`, aks: `"kubeletConfig":{` + aks + `}`, vm: vm}
	}
	kubelet("cpuManagerPolicy", `"static"`, `"cpuManagerPolicy":"static"`, `"--cpu-manager-policy":"static"`)
	kubelet("cpuCFSQuota", "false", `"cpuCfsQuota":false`, `"--cpu-cfs-quota":"false"`)
	kubelet("cpuCFSQuotaPeriod", `"200ms"`, `"cpuCfsQuotaPeriod":"200ms"`, `"--cpu-cfs-quota-period":"200ms"`)
	kubelet("imageGCHighThresholdPercent", "91", `"imageGcHighThreshold":91`, `"--image-gc-high-threshold":"91"`)
	kubelet("imageGCLowThresholdPercent", "71", `"imageGcLowThreshold":71`, `"--image-gc-low-threshold":"71"`)
	kubelet("topologyManagerPolicy", `"single-numa-node"`,
		`"topologyManagerPolicy":"single-numa-node"`, `"--topology-manager-policy":"single-numa-node"`)
	kubelet("allowedUnsafeSysctls", `["net.core.*", "kernel.msg*"]`,
		`"allowedUnsafeSysctls":["net.core.*","kernel.msg*"]`, `"--allowed-unsafe-sysctls":"net.core.*,kernel.msg*"`)
	kubelet("containerLogMaxSize", `"20Mi"`, `"containerLogMaxSizeMB":20`, `"--container-log-max-size":"20Mi"`)
	kubelet("containerLogMaxFiles", "7", `"containerLogMaxFiles":7`, `"--container-log-max-files":"7"`)
	kubelet("podPidsLimit", "4096", `"podMaxPids":4096`, `"--pod-max-pids":"4096"`)
	kubelet("failSwapOn", "false", `"failSwapOn":false`, `"--fail-swap-on":"false"`)
	node := map[string]string{"vnetDNSOverrides": "vnet_dns_overrides", "kubeDNSOverrides": "kube_dns_overrides"}
	zone := func(name, value, aks string) {
		for _, list := range []string{"vnetDNSOverrides", "kubeDNSOverrides"} {
			out["localDNS."+list+"."+name] = field{
				spec: `{"localDNS": {"mode": "Required", "` + list + `": [{"zone": "cluster.local", "` + name + `": ` + value + `}]}}`,
				aks:  `"` + list + `":{"cluster.local":{` + aks + `}}`,
				node: "local_dns_profile/" + node[list] + "/cluster.local" + cmp.Or(nodeField(aks), "/max_concurrent=1000"),
			}
		}
	}
	zone("zone", `"cluster.local"`, "")
	zone("queryLogging", `"Log"`, `"queryLogging":"Log"`)
	zone("protocol", `"PreferUDP"`, `"protocol":"PreferUDP"`)
	zone("forwardDestination", `"ClusterCoreDNS"`, `"forwardDestination":"ClusterCoreDNS"`)
	zone("forwardPolicy", `"RoundRobin"`, `"forwardPolicy":"RoundRobin"`)
	zone("maxConcurrent", "17", `"maxConcurrent":17`)
	zone("cacheDuration", `"1h30m"`, `"cacheDurationInSeconds":5400`)
	zone("serveStaleDuration", `"10m"`, `"serveStaleDurationInSeconds":600`)
	zone("serveStale", `"Verify"`, `"serveStale":"Verify"`)
	for name, aks := range map[string]string{
		"netIPv4IPLocalPortRange":      `"netIpv4IpLocalPortRange":"32768 60999"`,
		"netIPv4TCPTwReuse":            `"netIpv4TcpTwReuse":true`,
		"netIPv4NeighDefaultGcThresh1": `"netIpv4NeighDefaultGcThresh1":`,
		"netIPv4NeighDefaultGcThresh2": `"netIpv4NeighDefaultGcThresh2":`,
		"netIPv4NeighDefaultGcThresh3": `"netIpv4NeighDefaultGcThresh3":`,
		"netIPv4TCPFinTimeout":         `"netIpv4TcpFinTimeout":`,
		"netIPv4TCPKeepaliveProbes":    `"netIpv4TcpKeepaliveProbes":`,
		"netIPv4TCPKeepaliveTime":      `"netIpv4TcpKeepaliveTime":`,
		"netIPv4TCPKeepaliveIntvl":     `"netIpv4TcpkeepaliveIntvl":`,
		"netIPv4TCPMaxSynBacklog":      `"netIpv4TcpMaxSynBacklog":`,
		"netIPv4TCPMaxTwBuckets":       `"netIpv4TcpMaxTwBuckets":`,
		"fsAioMaxNr":                   "", "fsFileMax": "", "fsInotifyMaxUserWatches": "",
		"fsNrOpen": "", "kernelThreadsMax": "", "netCoreNetdevMaxBacklog": "",
		"netCoreOptmemMax": "", "netCoreRmemDefault": "", "netCoreRmemMax": "",
		"netCoreWmemDefault": "", "netCoreWmemMax": "", "netCoreSomaxconn": "",
		"netNetfilterNfConntrackBuckets": "", "netNetfilterNfConntrackMax": "", "vmMaxMapCount": "", "vmSwappiness": "", "vmVfsCachePressure": "",
	} {
		// Most have the same name in AKS's words, and are numbers.
		value := "99"
		switch {
		case aks == "":
			aks = `"` + name + `":99`
		case strings.HasSuffix(aks, ":"):
			aks += value
		default:
			_, value, _ = strings.Cut(aks, ":")
		}
		out["linuxOSConfig.sysctls."+name] = field{
			spec: `{"linuxOSConfig": {"sysctls": {"` + name + `": ` + value + `}}}`, aks: `"sysctls":{` + aks + `}`,
			node: "custom_linux_os_config/sysctl_config" + nodeField(`"`+name+`":`+value),
		}
	}
	return out
}

// nodeField turns a field of JSON in AKS's words into one of the node's contract, whose
// names are in snake case: "netCoreSomaxconn":99 into /net_core_somaxconn=99.
func nodeField(aks string) string {
	name, value, found := strings.Cut(strings.TrimPrefix(aks, `"`), `":`)
	if !found {
		return ""
	}
	name = strings.NewReplacer("IPv4", "Ipv4", "TCPKeepaliveIntvl", "TcpkeepaliveIntvl", "TCP", "Tcp", "IPLocal", "IpLocal").Replace(name)
	name = regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(name, func(s string) string { return "_" + strings.ToLower(s) })
	return "/" + name + "=" + value
}

// atPath is what the boot data among the bodies hold at a path, as PATH=VALUE.
func atPath(t *testing.T, bodies, path string) string {
	t.Helper()
	path, _, _ = strings.Cut(path, "=")
	_, text, _ := strings.Cut(bodies, `{"version":"v1"`)
	var at any
	if err := json.NewDecoder(strings.NewReader(`{"version":"v1"` + text)).Decode(&at); err != nil {
		t.Fatalf("%v in the boot data of\n%s", err, bodies)
	}
	for key := range strings.SplitSeq(path, "/") {
		object, _ := at.(map[string]any)
		at = object[key]
	}
	value, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	return path + "=" + string(value)
}

// leaves are the paths of all fields that hold a value, as JSON names them.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[karpv1.NillableDuration]() || of == reflect.TypeFor[metav1.Duration]() {
		return []string{path}
	}
	var out []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		out = append(out, leaves(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

func TestFieldTableIsComplete(t *testing.T) {
	want := leaves(reflect.TypeFor[v1beta1.AKSNodeClassSpec](), "")
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(fields(""))); !slices.Equal(got, want) {
		t.Errorf("the table has the fields\n%s\nthe class has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// told collects what Azure is told about machines, boot data decoded.
type told struct {
	http.RoundTripper
	mu   sync.Mutex
	text strings.Builder
}

var customData = regexp.MustCompile(`"customData":"([^"]*)"`)

func (h *told) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut {
		return h.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.mu.Lock()
	fmt.Fprintf(&h.text, "%s\n%s\n", r.Header.Get("BatchPutMachine"), body)
	if m := customData.FindSubmatch(body); m != nil {
		data, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err == nil {
			data, err = bootdata.Document(data)
		}
		if err != nil {
			h.mu.Unlock()
			return nil, err
		}
		h.text.Write(data)
	}
	h.mu.Unlock()
	return h.RoundTripper.RoundTrip(r)
}

func (h *told) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.text.Reset()
	return h.text.String()
}

// ownSubnets makes two subnets in a network of the user's own.
func (w *world) ownSubnets(t *testing.T) (one, two string) {
	t.Helper()
	token, err := w.Credential.GetToken(t.Context(), azpolicy.TokenRequestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	vnet := "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" +
		w.NodeResourceGroup + "/providers/Microsoft.Network/virtualNetworks/own"
	put := func(id, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, armtest.Endpoint+id+"?api-version=2025-05-01", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token.Token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := w.HTTP.Do(r)
		if err != nil || answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("make %s: %v, %v", id, answer, err)
		}
		answer.Body.Close()
		return id
	}
	put(vnet, `{"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["10.230.0.0/16"]}}}`)
	return put(vnet+"/subnets/nodes", `{"properties": {"addressPrefix": "10.230.0.0/20"}}`),
		put(vnet+"/subnets/more", `{"properties": {"addressPrefix": "10.230.16.0/20"}}`)
}

// withSpec makes the class one with this spec, and returns what its conditions
// have against it.
func (w *world) withSpec(t *testing.T, spec string) string {
	t.Helper()
	w.class.Spec, w.class.Status = v1beta1.AKSNodeClassSpec{}, v1beta1.AKSNodeClassStatus{}
	if err := json.Unmarshal([]byte(spec), &w.class.Spec); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Update(t.Context(), w.class); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Status().Update(t.Context(), w.class); err != nil {
		t.Fatal(err)
	}
	w.resolve(t)
	if err := w.kube.Get(t.Context(), types.NamespacedName{Name: w.class.Name}, w.class); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range w.class.Status.Conditions {
		if c.Status != metav1.ConditionTrue && c.Type != "Ready" {
			out = append(out, c.Reason+": "+c.Message)
		}
	}
	return strings.Join(out, "; ")
}

func TestEveryClassFieldReachesTheMachine(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				nodes, more := w.ownSubnets(t)
				heard := &told{RoundTripper: w.HTTP.Transport}
				w.HTTP = &http.Client{Transport: heard}
				w.restart(t, func(c *config.Config) {
					w.aksMachines(c)
					c.ProvisionMode, c.VNETSubnetID, c.SIGSubscriptionID = mode, nodes, "aaaaaaaa-0000-4000-8000-00000000000a"
					c.Batching = config.Batching{Idle: time.Second, Max: 5 * time.Second, Size: 50}
				})
				buy := func(what, spec, size string) (told, refused string) {
					t.Helper()
					if refused := w.withSpec(t, spec); refused != "" {
						return "", refused
					}
					if size == "" {
						size = "Standard_D4s_v5"
					}
					heard.take()
					created, err := w.port.Create(t.Context(),
						claim("general-abc12", need(corev1.LabelInstanceTypeStable, size), need(karpv1.CapacityTypeLabelKey, "on-demand")))
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return "", ""
					}
					told = heard.take()
					for w.port.Delete(t.Context(), created) == nil {
						time.Sleep(time.Second)
					}
					return told, ""
				}
				plain := map[string]string{}
				for _, size := range []string{"", "Standard_NC6s_v3"} {
					plain[size], _ = buy("an empty class", `{}`, size)
				}
				rows := fields(more)
				for _, name := range slices.Sorted(maps.Keys(rows)) {
					row := rows[name]
					want, without := row.aks, plain[row.size]
					got, refused := buy(name, row.spec, row.size)
					if refused != "" {
						t.Errorf("%s is refused: %s", name, refused)
						continue
					}
					if mode == config.ModeVMs {
						if want = row.vm; row.node != "" {
							want, got, without = row.node, atPath(t, got, row.node), atPath(t, without, row.node)
						}
					}
					switch {
					case !strings.Contains(got, want):
						t.Errorf("%s: Azure was not told %s, but\n%s", name, want, got)
					case strings.Contains(without, want):
						t.Errorf("%s: Azure is told %s without it too, so that the row shows nothing", name, want)
					}
				}
			}, func(c *armsim.Config) {
				c.Account.Features = []string{"Microsoft.ContainerService/ManagedGPUExperiencePreview"}
			})
		})
	}
}
