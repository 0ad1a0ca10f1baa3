package kube

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/model"
)

func requirement(key string, values ...string) *scheduling.Requirement {
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
}

func TestCatalogOfAnyProvider(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	offering := func(zone, capacityType string, price float64) *cloudprovider.Offering {
		return &cloudprovider.Offering{
			Requirements: scheduling.NewRequirements(requirement(corev1.LabelTopologyZone, zone),
				requirement(v1.CapacityTypeLabelKey, capacityType), requirement("placement", "zonal")),
			Price: price, Available: true,
		}
	}
	gone := offering("z2", "spot", 0.1)
	gone.Available = false
	smaller := offering("z3", "on-demand", 1)
	smaller.CapacityOverride = list("3", "8Gi")
	capacity := list("4", "16Gi")
	capacity["hugepages-2Mi"] = resource.MustParse("1Gi")
	capacity["nvidia.com/gpu"] = resource.MustParse("2")
	got := Catalog([]*cloudprovider.InstanceType{{
		Name: "big",
		Requirements: scheduling.NewRequirements(
			requirement(corev1.LabelInstanceTypeStable, "big"), requirement(corev1.LabelTopologyZone, "z1", "z2", "z3"),
			requirement("arch", "amd64"), requirement("mode", "user", "system"), requirement("placement", "zonal", "regional"),
			scheduling.NewRequirement("absent", corev1.NodeSelectorOpDoesNotExist),
		),
		Offerings: cloudprovider.Offerings{offering("z1", "on-demand", 1.5), gone, smaller},
		Capacity:  capacity, VolumeAttachmentLimits: map[string]int{"disk.csi.azure.com": 8},
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: list("100m", "1Gi"), EvictionThreshold: list("0", "100Mi")},
	}, nil})
	labels := func(zone, capacityType string) map[string]string {
		return map[string]string{model.LabelZone: zone, model.LabelCapacityType: capacityType, "placement": "zonal"}
	}
	want := []model.InstanceType{{
		Name:     "big",
		Labels:   map[string]string{model.LabelInstanceType: "big", "arch": "amd64"},
		Choices:  map[string][]string{"mode": {"system", "user"}},
		Capacity: model.Resources{3000, 8 << 30, 0, 0, 1 << 30, 2},
		Overhead: model.Resources{100, 1<<30 + 100<<20 + 1<<30, 0, 0, 0, 0}, VolumeSlots: map[string]int{"disk.csi.azure.com": 8},
		Offerings: []model.Offering{
			{Zone: "z1", CapacityType: "on-demand", Labels: labels("z1", "on-demand"), Price: 1_500_000, Available: true},
			{Zone: "z2", CapacityType: "spot", Labels: labels("z2", "spot"), Price: 100_000, Unavailable: "the provider reports it as unavailable"},
			{Zone: "z3", CapacityType: "on-demand", Labels: labels("z3", "on-demand"), Price: 1_000_000, Available: true},
		},
	}}
	if diff := cmp.Diff(model.NewAxes("hugepages-2Mi", "nvidia.com/gpu"), got.Axes); diff != "" {
		t.Errorf("axes differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got.InstanceTypes); diff != "" {
		t.Errorf("instance types differ (-want +got):\n%s", diff)
	}
}

func TestCatalogRoundTrip(t *testing.T) {
	first, err := ReadCatalog(strings.NewReader(smallCatalog))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := first.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(NewCatalogFile("eastus", catalog)); err != nil {
		t.Fatal(err)
	}
	second, err := ReadCatalog(&text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := second.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalog, again); diff != "" {
		t.Errorf("catalogue differs (-written +read):\n%s", diff)
	}
}

func TestReadCatalogErrorNamesField(t *testing.T) {
	entry := func(text string) string { return `{"region":"r","instanceTypes":[` + text + `]}` }
	const size = `"capacity":{"cpu":"1","memory":"1Gi","pods":"9"}`
	const offered = `,"offerings":[{"zone":"1","capacityType":"spot","price":1}]`
	for text, want := range map[string]string{
		`[]`:                            `catalogue: got a list, must be a mapping with the fields region, instanceTypes`,
		``:                              `catalogue is not of the form`,
		`words`:                         `catalogue: got "words", must be a mapping with the fields region, instanceTypes`,
		"a: [":                          `catalogue: is neither YAML nor JSON`,
		`{"region":"r","prices":1}`:     `catalogue: prices: there is no such field, allowed: region, instanceTypes`,
		`{"region":"r"} {"region":"s"}`: `catalogue: has 2 values, one after the other, must have one`,
		`{"region":"r"} and so on`:      `catalogue: what follows its value is neither YAML nor JSON: line 1: begins no document`,
		"region: r\n---\nregion: s\n":   `catalogue: has 2 values, one after the other, must have one`,
		"region: r\nregion: s\n":        `catalogue: region: is there twice, in its lines 1 and 2: give it once`,
		`{"region":"r","region":"s"}`:   `catalogue: region: is there twice, in its line 1: give it once`,
		entry(`{"name":"a",` + size + `,"foo":1,"offerings":[{"zone":"1","capacityType":"spot","cost":1}]}`): "" +
			"catalogue: instanceTypes[0].offerings[0].cost: there is no such field, allowed: zone, capacityType, price, diskPrice, nodePrice, " +
			"available, labels, reservation, remaining\n" +
			"instanceTypes[0].foo: there is no such field, allowed: name, arch, labels, capacity, overhead, choices, volumeSlots, gpu, offerings",
		entry(`{"name":"a",` + size + `,"arch":"x86"}`):                          `size "a": arch: got "x86", allowed: amd64, arm64`,
		entry(`{"name":"a",` + size + `,"labels":{"kubernetes.io/arch":"x86"}}`): `size "a": arch: got "x86", allowed: amd64, arm64`,
		entry(`{"name":"a",` + size + `}`):                                       `size "a": offerings: is empty, must list at least one way to buy the size`,
		entry(``):                                                                `instanceTypes is empty`,
		entry(`{}`):                                                              `instanceTypes[0].name is empty`,
		entry(`{"name":"a"}`):                                                    `size "a": capacity[cpu]: is missing, must be greater than zero`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","price":"NaN"}]}`):                                          `instanceTypes[0].offerings[0].price: got "NaN", must be a number`,
		entry(`{"name":"a","capacity":{"cpu":"many"}}`):                                                                                            `size "a": capacity[cpu]: got "many", must be a quantity`,
		entry(`{"name":"a",` + size + `,"overhead":{"cpu":"-1"}}`):                                                                                 `size "a": overhead[cpu]: got "-1", must not be negative`,
		entry(`{"name":"a",` + size + offered + `},{"name":"a",` + size + `}`):                                                                     `instanceTypes[1].name: "a" occurs twice`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"cheap"}]}`):                                                       `offerings[0].capacityType: got "cheap", allowed: on-demand, spot, reserved`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","price":-0.1}]}`):                                           `offerings[0].price: got -0.1, must be zero or more`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","price":1},{"zone":"1","capacityType":"spot","price":2}]}`): `offerings[1]: zone "1" with capacityType "spot" occurs twice`,
		"instanceTypes:\n- name: a\n  offerings:\n  - {price: .nan}":                                                                               `catalogue: line 4: got .nan, must be a number: zero or more dollars per hour`,
		entry(`{"name":"a",` + size + `,"offerings":[{"price":` + "NaN" + `}]}`):                                                                   `instanceTypes[0].offerings[0].price: got "NaN", must be a number`,
		entry(`{"name":"a","capacity":{"cpu":[]}}`):                                                                                                `instanceTypes[0].capacity[cpu]: got "[]", must be a quantity such as 4, 500m or 16Gi`,
		entry(`{"name":"a","capacity":{"cpu":"1e30"}}`):                                                                                            `size "a": capacity[cpu]: got "1e30", which is more than any machine will ever have`,
		entry(`{"name":"a",` + size + `,"overhead":{"cpu":"2"}}`):                                                                                  `size "a": overhead[cpu]: got "2", must not be more than the capacity, "1"`,
		entry(`{"name":"a",` + size + `,"labels":{"bad key!":"x"}}`):                                                                               `size "a": labels[bad key!]: key "bad key!": `,
		entry(`{"name":"a",` + size + `,"labels":{"k":"no good"}}`):                                                                                `size "a": labels[k]: value "no good": `,
		entry(`{"name":"a",` + size + `,"labels":{"node.kubernetes.io/instance-type":"b"}}`):                                                       `got "b", must be the size's name or left out`,
		entry(`{"name":"a",` + size + `,"choices":{"k":[]}}`):                                                                                      `size "a": choices[k]: is empty, must list at least one value`,
		entry(`{"name":"a",` + size + `,"choices":{"topology.kubernetes.io/zone":["1"]}}`):                                                         `choices[topology.kubernetes.io/zone]: is settled by the size and its offerings`,
		entry(`{"name":"a",` + size + `,"volumeSlots":{"d":-1}}`):                                                                                  `size "a": volumeSlots[d]: got -1, must be zero or more disks`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","price":1e7}]}`):                                            `offerings[0].price: got 1e+07, must be at most 1000000 dollars per hour`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"reserved","remaining":-1}]}`):                                     `offerings[0].remaining: got -1, must be zero or more machines`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","remaining":1}]}`):                                          `offerings[0].remaining: got 1, is only for capacityType reserved`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","reservation":"x"}]}`):                                      `offerings[0].reservation: got "x", is only for capacityType reserved`,
		entry(`{"name":"a",` + size + `,"offerings":[{"zone":"1","capacityType":"spot","labels":{"k":"no good"}}]}`):                               `offerings[0].labels[k]: value "no good": `,
	} {
		if _, err := ReadCatalog(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestReadCatalogAcceptsNumericQuantities(t *testing.T) {
	f, err := ReadCatalog(strings.NewReader("instanceTypes:\n- {name: a, capacity: {cpu: 1.5, memory: 1Gi, pods: 9}, overhead: {cpu: 0.1}, offerings: [{zone: z, capacityType: spot, price: 1}]}"))
	if err != nil {
		t.Fatal(err)
	}
	want := FileInstanceType{Name: "a", Capacity: Quantities{"cpu": "1.5", "memory": "1Gi", "pods": "9"}, Overhead: Quantities{"cpu": "0.1"},
		Offerings: []FileOffering{{Zone: "z", CapacityType: "spot", Price: 1}}}
	if diff := cmp.Diff([]FileInstanceType{want}, f.InstanceTypes); diff != "" {
		t.Errorf("catalogue differs (-want +got):\n%s", diff)
	}
}

// What a catalogue leaves open is what nearly every machine has: pools and pods ask
// for it by its label.
func TestReadCatalogDefaultsOSAndRegionLabels(t *testing.T) {
	const text = `{"region":"r","instanceTypes":[
		{"name":"a","capacity":{"cpu":"1","memory":"1Gi","pods":"9"},"offerings":[{"capacityType":"spot","price":1}]},
		{"name":"w","labels":{"kubernetes.io/os":"windows"},"capacity":{"cpu":"1","memory":"1Gi","pods":"9"},
		 "offerings":[{"capacityType":"spot","price":1}]}]}`
	f, err := ReadCatalog(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"linux", "windows"} {
		labels := c.InstanceTypes[i].Labels
		if labels["kubernetes.io/os"] != want || labels["topology.kubernetes.io/region"] != "r" {
			t.Errorf("%s: got labels %v", c.InstanceTypes[i].Name, labels)
		}
	}
}
