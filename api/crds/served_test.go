package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/api/v1alpha2"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// field is a field of the spec with values that a real API server takes and
// values that it refuses, each with what the refusal must name.
type field struct {
	path string
	good []string
	bad  map[string]string
}

// between is a number with bounds.
func between(path string, least, most int64) field {
	return field{path, []string{fmt.Sprint(least), fmt.Sprint(most)}, map[string]string{
		fmt.Sprint(least - 1): fmt.Sprintf("greater than or equal to %d", least),
		fmt.Sprint(most + 1):  fmt.Sprintf("less than or equal to %d", most),
	}}
}

// oneOf is an enumeration; a refusal lists it.
func oneOf(path string, allowed ...string) field {
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = `"` + a + `"`
	}
	return field{path, allowed, map[string]string{"Other": "supported values: " + strings.Join(quoted, ", ")}}
}

// formed is text of a form.
func formed(path, good, bad string) field {
	return field{path, []string{good}, map[string]string{bad: "should match"}}
}

// typed is a field that takes any value of its type.
func typed(path, good, bad, want string) field {
	return field{path, []string{good}, map[string]string{bad: want}}
}

func yesOrNo(path string) field {
	return field{path, []string{"true", "false"}, map[string]string{`"yes"`: "must be of type boolean"}}
}

// everyField is the whole spec, leaf by leaf.
func everyField() []field {
	const sysctls = "linuxOSConfig.sysctls."
	fields := []field{
		formed("vnetSubnetID", "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n", "my-subnet"),
		between("osDiskSizeGB", 30, 2048),
		oneOf("imageFamily", "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux"),
		formed("imageVersion", "202311.07.0", "latest"),
		oneOf("fipsMode", "FIPS", "Disabled"),
		{"tags", []string{`{team: a, "cost/center": b}`}, map[string]string{
			`{"a<b": c}`: "must not contain", `{"a\\b": c}`: "must not contain",
			`{a: ` + strings.Repeat("v", 257) + `}`: "at most 256", `{` + strings.Repeat("k", 513) + `: v}`: "at most 512",
		}},
		between("maxPods", 10, 250),
		oneOf("kubelet.cpuManagerPolicy", "none", "static"),
		yesOrNo("kubelet.cpuCFSQuota"),
		typed("kubelet.cpuCFSQuotaPeriod", "50ms", "50", "must be of type string"),
		between("kubelet.imageGCHighThresholdPercent", 0, 100),
		between("kubelet.imageGCLowThresholdPercent", 0, 100),
		oneOf("kubelet.topologyManagerPolicy", "restricted", "best-effort", "none", "single-numa-node"),
		typed("kubelet.allowedUnsafeSysctls", `["net.*"]`, "net", "must be of type array"),
		formed("kubelet.containerLogMaxSize", "10Mi", "ten"),
		{"kubelet.containerLogMaxFiles", []string{"2"}, map[string]string{"1": "greater than or equal to 2"}},
		typed("kubelet.podPidsLimit", "-1", `"none"`, "must be of type integer"),
		yesOrNo("kubelet.failSwapOn"),
		yesOrNo("security.encryptionAtHost"),
		yesOrNo("security.trustedLaunch.vtpm"),
		yesOrNo("security.trustedLaunch.secureBoot"),
		oneOf("gpu.mode", "Driver", "None"),
		oneOf("gpu.nvidia.managementMode", "Managed", "Unmanaged"),
		yesOrNo("artifactStreaming.enabled"),
		oneOf("localDNS.mode", "Preferred", "Required", "Disabled"),
		oneOf("linuxOSConfig.transparentHugePageEnabled", "always", "madvise", "never"),
		oneOf("linuxOSConfig.transparentHugePageDefrag", "always", "defer", "defer+madvise", "madvise", "never"),
		formed(sysctls+"netIPv4IPLocalPortRange", `"32768 60999"`, `"1024-60999"`),
		yesOrNo(sysctls + "netIPv4TCPTwReuse"),
	}
	for name, r := range map[string][2]int64{
		"fsAioMaxNr": {65536, 6553500}, "fsFileMax": {8192, 12000500}, "fsInotifyMaxUserWatches": {781250, 2097152}, "fsNrOpen": {8192, 20000500},
		"kernelThreadsMax": {20, 513785}, "netCoreNetdevMaxBacklog": {1000, 3240000}, "netCoreOptmemMax": {20480, 4194304},
		"netCoreRmemDefault": {212992, 134217728}, "netCoreRmemMax": {212992, 134217728},
		"netCoreWmemDefault": {212992, 134217728}, "netCoreWmemMax": {212992, 134217728},
		"netCoreSomaxconn": {4096, 3240000}, "netIPv4NeighDefaultGcThresh1": {128, 80000},
		"netIPv4NeighDefaultGcThresh2": {512, 90000}, "netIPv4NeighDefaultGcThresh3": {1024, 100000},
		"netIPv4TCPFinTimeout": {5, 120}, "netIPv4TCPKeepaliveProbes": {1, 15},
		"netIPv4TCPKeepaliveTime": {30, 432000}, "netIPv4TCPKeepaliveIntvl": {10, 90},
		"netIPv4TCPMaxSynBacklog": {128, 3240000}, "netIPv4TCPMaxTwBuckets": {8000, 1440000},
		"netNetfilterNfConntrackBuckets": {65536, 524288}, "netNetfilterNfConntrackMax": {131072, 2097152},
		"vmMaxMapCount": {65530, 262144}, "vmSwappiness": {0, 100}, "vmVfsCachePressure": {0, 100},
	} {
		fields = append(fields, between(sysctls+name, r[0], r[1]))
	}
	for _, list := range []string{"vnetDNSOverrides", "kubeDNSOverrides"} {
		for _, f := range []field{
			formed("zone", "example.com", `"-x"`),
			oneOf("queryLogging", "Error", "Log"), oneOf("protocol", "PreferUDP", "ForceTCP"),
			oneOf("forwardDestination", "ClusterCoreDNS", "VnetDNS"),
			oneOf("forwardPolicy", "Sequential", "RoundRobin", "Random"), oneOf("serveStale", "Verify", "Immediate", "Disable"),
			{"maxConcurrent", []string{"0", "1000"}, map[string]string{"-1": "greater than or equal to 0"}},
			formed("cacheDuration", "1h30m", "soon"), formed("serveStaleDuration", "30s", "never"),
		} {
			f.path = "localDNS." + list + "[]." + f.path
			fields = append(fields, f)
		}
	}
	return fields
}

// with is a spec in which one field has a value, and what the field needs beside it.
func with(path, value string) string {
	switch {
	case path == "fipsMode" && value == "FIPS":
		return "{imageFamily: AzureLinux, fipsMode: FIPS}"
	case strings.Contains(path, "[]."):
		list, leaf, _ := strings.Cut(strings.TrimPrefix(path, "localDNS."), "[].")
		zone, own := "example.com", leaf+": "+value
		if leaf == "zone" {
			zone, own = value, ""
		} else if value == "ClusterCoreDNS" {
			zone = "sub.cluster.local"
		}
		return crds.DNSSpec(list, crds.DNSZone(".", ""), crds.DNSZone("cluster.local", ""), crds.DNSZone(strings.Trim(zone, `"`), own))
	case path == "localDNS.mode":
		return strings.Replace(crds.DNSSpec("", crds.DNSZone(".", ""), crds.DNSZone("cluster.local", "")), "Required", value, 1)
	}
	parts := strings.Split(path, ".")
	return "{" + strings.Join(parts, ": {") + ": " + value + strings.Repeat("}", len(parts))
}

// leaves lists the fields of a schema that hold values.
func leaves(s map[string]any, path string, out *[]string) {
	properties, _ := s["properties"].(map[string]any)
	if items, ok := s["items"].(map[string]any); ok && items["type"] == "object" {
		leaves(items, path+"[]", out)
		return
	}
	if len(properties) == 0 {
		*out = append(*out, path)
		return
	}
	for name, p := range properties {
		leaves(p.(map[string]any), strings.TrimPrefix(path+"."+name, "."), out)
	}
}

// server is a real control plane that serves the definitions.
type server struct {
	*labtest.Lab
	client   dynamic.Interface
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader keeps what the API server warns of.
func (s *server) HandleWarningHeader(_ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

func newServer(t *testing.T) *server {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var manifests [][]byte
	for _, crd := range all {
		text, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, text)
	}
	s := &server{Lab: labtest.Start(t, lab.Config{Manifests: manifests})}
	cfg := s.Config()
	cfg.QPS, cfg.Burst, cfg.WarningHandler = 1000, 1000, s
	if s.client, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) classes(version string) dynamic.NamespaceableResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: v1beta1.Group, Version: version, Resource: "aksnodeclasses"})
}

// apply creates a class as `kubectl apply` does: unknown fields are errors. With
// dry it is only admitted.
func (s *server) apply(ctx context.Context, version, name, spec string, dry bool) error {
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s/%s, kind: AKSNodeClass, metadata: {name: %s}, spec: %s}", v1beta1.Group, version, name, spec)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		return err
	}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := s.classes(version).Create(ctx, object, options)
	return err
}

func TestAPIServerAdmitsValidFieldsAndRefusesInvalidOnes(t *testing.T) {
	s := newServer(t)
	fields := everyField()
	t.Run("every field is looked at", func(t *testing.T) {
		all, err := crds.All()
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		text, err := json.Marshal(all[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
		if err == nil {
			err = json.Unmarshal(text, &tree)
		}
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		leaves(tree, "", &want)
		for _, f := range fields {
			got = append(got, f.path)
		}
		// A quantity has no structure to check; the rule about it is checked below.
		got = append(got, "linuxOSConfig.swapFileSize")
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of the schema and of this test (-schema +test):\n%s", diff)
		}
	})
	checks := 0
	for _, version := range []string{"v1beta1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			for _, f := range fields {
				for _, value := range f.good {
					checks++
					if err := s.apply(t.Context(), version, "x", with(f.path, value), true); err != nil {
						t.Errorf("%s: %s is refused: %v", f.path, value, err)
					}
				}
				for _, value := range slices.Sorted(maps.Keys(f.bad)) {
					checks++
					err := s.apply(t.Context(), version, "x", with(f.path, value), true)
					leaf := f.path[strings.LastIndexAny(f.path, ".]")+1:]
					if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), f.bad[value]) || !strings.Contains(err.Error(), leaf) {
						t.Errorf("%s: %s: got %v, want a refusal that names the field and says %q", f.path, value, err, f.bad[value])
					}
				}
			}
			rules := map[string]string{
				`{osDiskSizeGb: 128}`:                       "unknown field",
				`{kubelet: {maxPods: 30}}`:                  "unknown field",
				`{localDNS: {}}`:                            "localDNS.mode",
				`{linuxOSConfig: {swapFileSize: 1Gi}}`:      "failSwapOn must be set to false",
				`{fipsMode: FIPS, imageFamily: Ubuntu2404}`: "not yet supported for Ubuntu2404",
				`{fipsMode: FIPS, imageFamily: Ubuntu2204}`: "TrustedLaunch is required",
				`{kubelet: {imageGCHighThresholdPercent: 5, imageGCLowThresholdPercent: 9}}`: "must be greater",
			}
			for spec, want := range rules {
				checks++
				if err := s.apply(t.Context(), version, "x", spec, true); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("spec %s: got %v, want a refusal that says %q", spec, err, want)
				}
			}
			if err := s.apply(t.Context(), version, "x", `{linuxOSConfig: {swapFileSize: 1Gi}, kubelet: {failSwapOn: false}}`, true); err != nil {
				t.Errorf("swap: %v", err)
			}
		})
	}
	t.Logf("%d fields, %d values sent to the API server", len(fields), checks)
	t.Run("names and columns", s.names)
	t.Run("the older version is the same object", s.versions)
}

func (s *server) names(t *testing.T) {
	if err := s.apply(t.Context(), "v1beta1", "named", "{}", false); err != nil {
		t.Fatal(err)
	}
	client := s.Client()
	resources, err := client.Discovery().ServerResourcesForGroupVersion(v1beta1.Group + "/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range resources.APIResources {
		got[r.Name] = fmt.Sprint(r.Kind, r.ShortNames, r.Categories, r.Namespaced)
	}
	want := map[string]string{
		"aksnodeclasses": "AKSNodeClass[aksnc aksncs] [karpenter nap] false", "aksnodeclasses/status": "AKSNodeClass[] [] false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kind, short names, categories, scope (-want +got):\n%s", diff)
	}
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/apis/"+v1beta1.Group+"/v1beta1/aksnodeclasses").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s %d", c.Name, c.Priority))
	}
	if got, want := strings.Join(columns, ", "), "Name 0, Ready 0, Age 0, ImageFamily 1"; got != want {
		t.Errorf("columns are %s, want %s", got, want)
	}
}

// versions creates a class in the older version and reads it in the newer one,
// with the newer one's defaults.
func (s *server) versions(t *testing.T) {
	if err := s.apply(t.Context(), v1alpha2.GroupVersion().Version, "old", "{imageVersion: 202311.07.0}", false); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	warnings := strings.Join(s.warnings, "\n")
	s.mu.Unlock()
	if !strings.Contains(warnings, "deprecated; use karpenter.azure.com/v1beta1") {
		t.Errorf("the API server warns %q, want that the version is deprecated", warnings)
	}
	specs := map[string]string{}
	for _, version := range []string{"v1alpha2", "v1beta1"} {
		object, err := s.classes(version).Get(t.Context(), "old", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := object.GetAPIVersion(), v1beta1.Group+"/"+version; got != want {
			t.Errorf("served as %s, want %s", got, want)
		}
		text, err := json.Marshal(object.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		specs[version] = string(text)
	}
	const want = `{"imageFamily":"Ubuntu","imageVersion":"202311.07.0","osDiskSizeGB":128}`
	if specs["v1alpha2"] != want || specs["v1beta1"] != want {
		t.Errorf("the spec is %v, want %s in both", specs, want)
	}
}
