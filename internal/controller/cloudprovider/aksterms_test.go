package cloudprovider

import (
	"encoding/json"
	"strings"
	"testing"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

func ptr[T any](v T) *T { return &v }

func TestAKSMachineLinuxOSAndDNSSettings(t *testing.T) {
	class := &v1beta1.AKSNodeClass{Spec: v1beta1.AKSNodeClassSpec{
		Kubelet: &v1beta1.KubeletConfiguration{ContainerLogMaxSize: ptr("50Mi"), FailSwapOn: ptr(false)},
		LinuxOSConfig: &v1beta1.LinuxOSConfiguration{
			SwapFileSize: ptr("1500Mi"), TransparentHugePageEnabled: ptr("madvise"),
			Sysctls: &v1beta1.SysctlConfiguration{
				NetIPv4TCPKeepaliveIntvl: ptr(int32(20)), VMSwappiness: ptr(int32(10)), NetIPv4IPLocalPortRange: ptr("32768 60999"),
			},
		},
		LocalDNS: &v1beta1.LocalDNS{Mode: v1beta1.LocalDNSModeRequired, VnetDNSOverrides: []v1beta1.LocalDNSZoneOverride{
			{Zone: ".", Protocol: "PreferUDP", CacheDuration: karpv1.MustParseNillableDuration("1h30m"), ForwardPolicy: "Random"},
		}},
	}}
	enabled := v1beta1.LocalDNSStateEnabled
	class.Status.LocalDNSState = &enabled
	value := ClassValue(class)
	if value.Kubelet.ContainerLogMaxSizeMB != 50 {
		t.Errorf("log size %d MB", value.Kubelet.ContainerLogMaxSizeMB)
	}
	for what, c := range map[string]struct {
		got  any
		want string
	}{
		"operating system": {value.LinuxOS,
			`{"swapFileSizeMB":1500,"sysctls":{"netIpv4IpLocalPortRange":"32768 60999","netIpv4TcpkeepaliveIntvl":20,"vmSwappiness":10},"transparentHugePageEnabled":"madvise"}`},
		"DNS": {value.LocalDNSProfile,
			`{"mode":"Required","vnetDNSOverrides":{".":{"cacheDurationInSeconds":5400,"forwardPolicy":"Random","protocol":"PreferUDP"}}}`},
	} {
		if text, err := json.Marshal(c.got); err != nil || string(text) != c.want {
			t.Errorf("%s: %s, %v, want %s", what, text, err, c.want)
		}
	}
	if value := ClassValue(&v1beta1.AKSNodeClass{}); value.LinuxOS != nil || value.LocalDNSProfile != nil {
		t.Errorf("a class that says nothing: %+v", value)
	}
}

func TestSizesAreToldInNearestMegabytes(t *testing.T) {
	for text, want := range map[string]int32{"50Mi": 50, "1500Ki": 1, "1600Ki": 2, "1Ki": 1, "2K": 1, "2000000K": 1907, "2G": 1907, "": 0} {
		if got := megabytes(&text); got != want {
			t.Errorf("%q: %d MB, want %d", text, got, want)
		}
	}
	if got := megabytes(nil); got != 0 {
		t.Errorf("no size: %d MB, want 0", got)
	}
}

func TestAKSMachineRefusesInexpressibleKubeletAmounts(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"processes": {`{"kubelet": {"podPidsLimit": 2147483648}}`,
			"spec.kubelet.podPidsLimit is more than AKS allows, which is 2147483647; -1 means no limit"},
		"no limit": {`{"kubelet": {"podPidsLimit": -1}}`, ""},
		"a log": {`{"kubelet": {"containerLogMaxSize": "3P"}}`,
			"spec.kubelet.containerLogMaxSize is more than AKS allows, which is 2147483647Mi"},
		"a swap file": {`{"linuxOSConfig": {"swapFileSize": "3P"}, "kubelet": {"failSwapOn": false}}`,
			"spec.linuxOSConfig.swapFileSize is more than AKS allows, which is 2147483647Mi"},
		"a duration": {`{"localDNS": {"mode": "Required", "kubeDNSOverrides": [{"zone": ".", "cacheDuration": "600000h"}]}}`,
			"spec.localDNS.kubeDNSOverrides[.].cacheDuration is more than AKS allows, which is 2147483647s"},
		"what fits": {`{"localDNS": {"mode": "Required", "vnetDNSOverrides": [{"zone": ".", "serveStaleDuration": "5000h"}]}, "kubelet": {"podPidsLimit": 2147483647, "containerLogMaxSize": "2P"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restart(t, w.aksMachines)
				want := c.want
				if want != "" {
					want = reasonUnsupported + ": " + want
				}
				if got := w.withSpec(t, c.spec); got != want {
					t.Errorf("conditions %q, want %q", got, want)
				}
			})
		})
	}
}

func TestClassNotReadyWithImpossibleSettings(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"nap's own tags":       {`{"tags": {"karpenter.azure.com/aksmachine_nodeclaim": "mine"}}`, "the tags cannot be put on Azure's resources: spec.tags[karpenter.azure.com/aksmachine_nodeclaim] is what nap finds its machines by; choose another key"},
		"one tag twice":        {`{"tags": {"team": "a", "Team": "b"}}`, "the tags cannot be put on Azure's resources: spec.tags[Team] and spec.tags[team] are one name to Azure, which takes / for _ and upper case for lower case; keep one"},
		"tags":                 {`{"tags": {"team": "a", "cost/center": "b"}}`, ""},
		"one threshold, low":   {`{"kubelet": {"imageGCHighThresholdPercent": 70}}`, "spec.kubelet.imageGCHighThresholdPercent 70 is not greater than imageGCLowThresholdPercent 80; set both: what is not set is 85 and 80"},
		"the other, high":      {`{"kubelet": {"imageGCLowThresholdPercent": 90}}`, "spec.kubelet.imageGCHighThresholdPercent 85 is not greater than imageGCLowThresholdPercent 90; set both: what is not set is 85 and 80"},
		"one threshold, right": {`{"kubelet": {"imageGCHighThresholdPercent": 90}}`, ""},
		"both thresholds":      {`{"kubelet": {"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 60}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				want := c.want
				if want != "" {
					want = reasonUnsupported + ": " + want
				}
				if got := w.withSpec(t, c.spec); got != want {
					t.Errorf("conditions %q, want %q", got, want)
				}
			})
		})
	}
}

func TestClassWithImageBeforeContractNotReady(t *testing.T) {
	const want = reasonUnsupported + ": spec.imageVersion 202510.9.0 is older than 202510.11.0: such images do not understand"
	inWorld(t, func(t *testing.T, w *world) {
		if got := w.withSpec(t, `{"imageVersion": "202510.9.0"}`); !strings.Contains(got, want) {
			t.Errorf("plain machines: conditions %q, want %q", got, want)
		}
		if got := w.withSpec(t, `{"imageVersion": "202606.02.0"}`); got != "" {
			t.Errorf("plain machines, a newer image: conditions %q", got)
		}
		w.restart(t, w.aksMachines)
		if got := w.withSpec(t, `{"imageVersion": "202510.9.0"}`); strings.Contains(got, reasonUnsupported) {
			t.Errorf("AKS machines, which AKS boots: conditions %q", got)
		}
	})
}
