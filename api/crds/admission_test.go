package crds

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// admission is what the API server does with an object of one version: default
// it, check it against the schema, evaluate the CEL rules.
type admission struct {
	schema     *schema.Structural
	validation *apiextensions.JSONSchemaProps
	rules      *cel.Validator
}

func newAdmission(t *testing.T, kind, version string) admission {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			if crd.Spec.Names.Kind != kind || v.Name != version {
				continue
			}
			props := &apiextensions.JSONSchemaProps{}
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(props)
			if err != nil {
				t.Fatal(err)
			}
			return admission{structural, props, cel.NewValidator(structural, true, math.MaxInt64)}
		}
	}
	t.Fatalf("no definition of %s %s", kind, version)
	return admission{}
}

// admit returns what the API server would say of the object, after defaulting it.
func (a admission) admit(t *testing.T, manifest string) (object map[string]any, faults string) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	defaulting.Default(object, a.schema)
	validator, _, err := validation.NewSchemaValidator(a.validation)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range validation.ValidateCustomResource(nil, object, validator) {
		all = append(all, f.Error())
	}
	ruleFaults, _ := a.rules.Validate(t.Context(), nil, a.schema, object, nil, math.MaxInt64)
	for _, f := range ruleFaults {
		all = append(all, f.Error())
	}
	return object, strings.Join(all, "\n")
}

func TestAdmissionRefusesContradictoryNodeClasses(t *testing.T) {
	tests := []struct{ name, spec, want string }{
		{"an empty spec is fine", `{}`, ""},
		{"a tiny disk", `{osDiskSizeGB: 29}`, "greater than or equal to 30"},
		{"a huge disk", `{osDiskSizeGB: 2049}`, "less than or equal to 2048"},
		{"an unknown image family", `{imageFamily: Windows}`, `supported values: "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux"`},
		{"a pinned image", `{imageVersion: 202311.07.0}`, ""},
		{"a pin that is no version", `{imageVersion: latest}`, "should match"},
		{"a subnet that is no resource id", `{vnetSubnetID: my-subnet}`, "should match"},
		{"a subnet", `{vnetSubnetID: /subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n}`, ""},
		{"too many pods", `{maxPods: 251}`, "less than or equal to 250"},
		{"FIPS on Ubuntu2404", `{fipsMode: FIPS, imageFamily: Ubuntu2404}`, "not yet supported for Ubuntu2404"},
		{"FIPS on Ubuntu2204 without trusted launch", `{fipsMode: FIPS, imageFamily: Ubuntu2204}`, "TrustedLaunch is required"},
		{"FIPS on Ubuntu2204 with trusted launch", `{fipsMode: FIPS, imageFamily: Ubuntu2204, security: {trustedLaunch: {vtpm: true}}}`, ""},
		{"FIPS with trusted launch on AzureLinux",
			`{fipsMode: FIPS, imageFamily: AzureLinux, security: {trustedLaunch: {secureBoot: true}}}`, "only supported for imageFamily Ubuntu"},
		{"swap while the kubelet refuses it", `{linuxOSConfig: {swapFileSize: 1Gi}}`, "failSwapOn must be set to false"},
		{"swap", `{linuxOSConfig: {swapFileSize: 1Gi}, kubelet: {failSwapOn: false}}`, ""},
		{"a device plugin without driver", `{gpu: {mode: None, nvidia: {managementMode: Managed}}}`, "needs the driver that mode Driver installs"},
		{"a device plugin", `{gpu: {nvidia: {managementMode: Managed}}}`, ""},
		{"a device plugin of your own", `{gpu: {mode: None, nvidia: {managementMode: Unmanaged}}}`, ""},
		{"tag key with a bad character", `{tags: {"a<b": c}}`, "must not contain"},
		{"tag key with a backslash", `{tags: {"a\\b": c}}`, "must not contain"},
		{"tag value too long", `{tags: {a: ` + strings.Repeat("v", 257) + `}}`, "at most 256"},
		{"tag key too long", `{tags: {` + strings.Repeat("k", 513) + `: v}}`, "at most 512"},
		{"image garbage collection upside down",
			`{kubelet: {imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 80}}`, "must be greater"},
		{"one log file", `{kubelet: {containerLogMaxFiles: 1}}`, "greater than or equal to 2"},
		{"log size without unit", `{kubelet: {containerLogMaxSize: "50"}}`, "should match"},
		{"a period of nothing", `{kubelet: {cpuCFSQuotaPeriod: banana}}`, "should match"},
		{"an empty period", `{kubelet: {cpuCFSQuotaPeriod: ""}}`, "should match"},
		{"a period too long", `{kubelet: {cpuCFSQuotaPeriod: 1m}}`, "must be from 1ms to 1s"},
		{"a period beyond all time", `{kubelet: {cpuCFSQuotaPeriod: 99999999999999999h}}`, "cpuCFSQuotaPeriod"},
		{"a period", `{kubelet: {cpuCFSQuotaPeriod: 50ms}}`, ""},
		{"a period left to the kubelet", `{kubelet: {cpuCFSQuotaPeriod: 0s}}`, ""},
		{"more log files than a number holds", `{kubelet: {containerLogMaxFiles: 3000000000}}`, "less than or equal to"},
		{"more processes than a number holds", `{kubelet: {podPidsLimit: 1e30}}`, "podPidsLimit"},
		{"fewer processes than none", `{kubelet: {podPidsLimit: -2}}`, "greater than or equal to -1"},
		{"more queries than a number holds",
			DNSSpec("", DNSZone(".", "maxConcurrent: 3000000000"), DNSZone("cluster.local", "")),
			"less than or equal to"},
		{"kernel parameters", `{kubelet: {allowedUnsafeSysctls: ["kernel.msg*", net.core.somaxconn, net/ipv4/ip_forward]}}`, ""},
		{"a kernel parameter that is a flag, too", `{kubelet: {allowedUnsafeSysctls: ["kernel.msg* --anonymous-auth=true"]}}`, "should match"},
		{"a kernel parameter without a name", `{kubelet: {allowedUnsafeSysctls: [""]}}`, "should match"},
		{"swap below nothing", `{linuxOSConfig: {swapFileSize: -1Gi}, kubelet: {failSwapOn: false}}`, "should match"},
		{"swap without a unit", `{linuxOSConfig: {swapFileSize: "1500"}, kubelet: {failSwapOn: false}}`, "should match"},
		{"swap of nothing", `{linuxOSConfig: {swapFileSize: banana}, kubelet: {failSwapOn: false}}`, "should match"},
		{"a subnet in another script",
			`{vnetSubnetID: /subscriptions/s/resourceGroups/ресурсы/providers/Microsoft.Network/virtualNetworks/v/subnets/n}`, "should match"},
		{"an empty subnet", `{vnetSubnetID: ""}`, "should match"},
		{"an empty image family", `{imageFamily: ""}`, "supported values"},
		{"an empty mode", `{localDNS: {mode: ""}}`, "supported values"},
		{"no mode", `{localDNS: {}}`, "Required value"},
		{"local DNS", DNSSpec("", DNSZone(".", ""), DNSZone("cluster.local", "")), ""},
		{"local DNS without overrides", `{localDNS: {mode: Required}}`, "vnetDNSOverrides: Required value"},
		{"local DNS without its zones", DNSSpec("", DNSZone(".", "")), "must contain required zones"},
		{"root zone of the network to the cluster",
			DNSSpec("vnetDNSOverrides", DNSZone(".", "forwardDestination: ClusterCoreDNS"), DNSZone("cluster.local", "")), "root zone"},
		{"external zone of the network to the cluster", DNSSpec("vnetDNSOverrides", DNSZone(".", ""),
			DNSZone("cluster.local", ""), DNSZone("example.com", "forwardDestination: ClusterCoreDNS")), "external domains"},
		{"cluster zone to the network",
			DNSSpec("", DNSZone(".", ""), DNSZone("cluster.local", "forwardDestination: VnetDNS")), "cannot be forwarded to VnetDNS"},
		{"verified stale answers over TCP alone",
			DNSSpec("", DNSZone(".", "serveStale: Verify, protocol: ForceTCP"), DNSZone("cluster.local", "")), "ForceTCP"},
		{"a duration beyond AKS", DNSSpec("", DNSZone(".", "cacheDuration: 600000h"), DNSZone("cluster.local", "")), "at most 2147483647s"},
		{"a duration beyond all time", DNSSpec("", DNSZone(".", "cacheDuration: 9999999999h"), DNSZone("cluster.local", "")), "cacheDuration"},
		{"receive buffers", `{linuxOSConfig: {sysctls: {netCoreRmemDefault: 300000, netCoreRmemMax: 250000}}}`,
			"netCoreRmemDefault must be at most"},
		{"send buffers", `{linuxOSConfig: {sysctls: {netCoreWmemDefault: 300000, netCoreWmemMax: 250000}}}`,
			"netCoreWmemDefault must be at most"},
		{"neighbour thresholds", `{linuxOSConfig: {sysctls: {netIPv4NeighDefaultGcThresh1: 600, netIPv4NeighDefaultGcThresh2: 512}}}`,
			"GcThresh1 must be at most"},
		{"port range", `{linuxOSConfig: {sysctls: {netIPv4IPLocalPortRange: "32768 60999"}}}`, ""},
		{"port range too low", `{linuxOSConfig: {sysctls: {netIPv4IPLocalPortRange: "1000 60999"}}}`, "must be from 1024"},
		{"port range reversed", `{linuxOSConfig: {sysctls: {netIPv4IPLocalPortRange: "60000 40000"}}}`, "must be at most the last"},
	}
	for _, version := range []string{"v1beta1", "v1alpha2"} {
		a := newAdmission(t, "AKSNodeClass", version)
		for _, tt := range tests {
			t.Run(version+"/"+tt.name, func(t *testing.T) {
				_, faults := a.admit(t, "{metadata: {name: default}, spec: "+tt.spec+"}")
				if tt.want == "" && faults != "" || !strings.Contains(faults, tt.want) {
					t.Errorf("spec %s: refused with %q, want %q", tt.spec, faults, tt.want)
				}
			})
		}
	}
}

func TestLocalDNSZoneNeedsEveryField(t *testing.T) {
	whole := DNSZone("cluster.local", "")
	a := newAdmission(t, "AKSNodeClass", "v1beta1")
	for _, field := range []string{"queryLogging", "protocol", "forwardDestination", "forwardPolicy", "maxConcurrent", "cacheDuration",
		"serveStaleDuration", "serveStale"} {
		start := strings.Index(whole, ", "+field+":")
		end := strings.IndexAny(whole[start+1:], ",}") + start + 1
		spec := DNSSpec("", DNSZone(".", ""), whole[:start]+whole[end:])
		if _, faults := a.admit(t, "{metadata: {name: default}, spec: "+spec+"}"); !strings.Contains(faults, field+": Required value") {
			t.Errorf("without %s: got %q, want a refusal that requires it", field, faults)
		}
	}
}

func TestEmptyNodeClassGetsDocumentedDefaults(t *testing.T) {
	object, _ := newAdmission(t, "AKSNodeClass", "v1beta1").admit(t, `{metadata: {name: default}, spec: {gpu: {}, kubelet: {}}}`)
	got, err := yaml.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	want := `gpu:
  mode: Driver
imageFamily: Ubuntu
kubelet:
  containerLogMaxFiles: 5
  containerLogMaxSize: 50Mi
  cpuCFSQuota: true
  cpuCFSQuotaPeriod: 100ms
  cpuManagerPolicy: none
  topologyManagerPolicy: none
osDiskSizeGB: 128
`
	if string(got) != want {
		t.Errorf("defaults:\n%s\nwant:\n%s", got, want)
	}
}

func TestNodePoolWithMistypedAzureLabelIsRefused(t *testing.T) {
	a := newAdmission(t, "NodePool", "v1")
	pool := func(key string) string {
		return `{metadata: {name: p}, spec: {template: {spec: {nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: d},
			requirements: [{key: ` + key + `, operator: Exists}]}}}}`
	}
	for _, key := range []string{"karpenter.azure.com/sku-family",
		"kubernetes.azure.com/mode", "example.com/anything", "karpenter.sh/capacity-type"} {
		if _, faults := a.admit(t, pool(key)); faults != "" {
			t.Errorf("%s: refused: %s", key, faults)
		}
	}
	for _, key := range []string{"karpenter.azure.com/sku-famly", "kubernetes.azure.com/agentpool"} {
		if _, faults := a.admit(t, pool(key)); !strings.Contains(faults, "is restricted to") {
			t.Errorf("%s: got %q, want a refusal that lists what is allowed", key, faults)
		}
	}
	labelled := func(key string) string {
		return `{metadata: {name: p}, spec: {template: {metadata: {labels: {` + key + `: x}}, spec: {requirements: [],
			nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: d}}}}}`
	}
	for _, key := range v1beta1.LegacyLabels() {
		for _, manifest := range []string{pool(key), labelled(key)} {
			if _, faults := a.admit(t, manifest); !strings.Contains(faults, "is restricted: AKS sets it itself") {
				t.Errorf("%s: got %q, want a refusal", manifest, faults)
			}
		}
	}
}

// TestFirstStatusOfNodeAutoProvisioningIsAdmitted: a merge patch leaves out what is zero,
// as the numbers of a cluster that has nothing yet.
func TestFirstStatusOfNodeAutoProvisioningIsAdmitted(t *testing.T) {
	a := newAdmission(t, "NodeAutoProvisioning", "v1alpha1")
	const text = "{apiVersion: nap.azure.com/v1alpha1, kind: NodeAutoProvisioning, metadata: {name: default}, spec: {}, status: {observedGeneration: 1}}"
	if _, faults := a.admit(t, text); strings.Contains(faults, "status") {
		t.Error(faults)
	}
}
