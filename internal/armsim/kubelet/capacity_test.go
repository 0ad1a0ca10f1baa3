package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// flagsOf are the settings of a kubelet with a command line, and with those flags without
// which none starts.
func flagsOf(t *testing.T, line string) kubeletflags.Flags {
	t.Helper()
	c := nodeconfig.KubeletConfig{KubeletFlags: map[string]string{
		"--anonymous-auth": "false", "--authorization-mode": "Webhook", "--client-ca-file": kubeletflags.CAFile, "--read-only-port": "0",
	}}
	for _, flag := range strings.Fields(line) {
		name, value, _ := strings.Cut(flag, "=")
		c.KubeletFlags[name] = value
	}
	f, err := kubeletflags.Of("1.35.1", c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const gib = 1 << 30

// The sizes and reservations are AKS's; the results are what AKS nodes of these
// sizes are planned with.
func TestAllocatableFromSizeAndReservations(t *testing.T) {
	cases := map[string]struct {
		m                Machine
		flags            string
		capacity, memory int64
		cpu, disk        int64
	}{
		"D2s_v5": {
			Machine{VCPUs: 2, MemoryBytes: 8 * gib, OSDiskGB: 128},
			"--kube-reserved=cpu=100m,memory=1843Mi --eviction-hard=memory.available<750Mi,nodefs.available<10%",
			7945689497, 7945689497 - (1843+750)<<20, 1900, 128e9 - 12.8e9,
		},
		"D96s_v5": {
			Machine{VCPUs: 96, MemoryBytes: 384 * gib, OSDiskGB: 30},
			"--kube-reserved=cpu=1060m,memory=14786Mi --system-reserved=ephemeral-storage=1G --eviction-hard=memory.available<750Mi",
			381393095884, 381393095884 - (14786+750)<<20, 94940, 29e9,
		},
		"reserved more than there is": {
			Machine{VCPUs: 1, MemoryBytes: gib, OSDiskGB: 30},
			"--kube-reserved=cpu=2,memory=2Gi --eviction-hard=memory.available<0", 993211187, 0, 0, 30e9,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := flagsOf(t, c.flags)
			total := capacity(c.m, f.MaxPods, DefaultMemoryOverhead, true)
			left := allocatable(total, f)
			if got := total.Memory().Value(); got != c.capacity {
				t.Errorf("memory capacity %d, want %d", got, c.capacity)
			}
			if got := left.Memory().Value(); got != c.memory {
				t.Errorf("allocatable memory %d, want %d", got, c.memory)
			}
			if got := left.Cpu().MilliValue(); got != c.cpu {
				t.Errorf("allocatable cpu %dm, want %dm", got, c.cpu)
			}
			if got := left.StorageEphemeral().Value(); got != c.disk {
				t.Errorf("allocatable disk %d, want %d", got, c.disk)
			}
			if got := left.Pods().Value(); got != 110 { // the kubelet's own default
				t.Errorf("pods %d, want %d", got, 110)
			}
		})
	}
}

func TestGPUsCountOnlyOnceAnnounced(t *testing.T) {
	m := Machine{VCPUs: 24, MemoryBytes: 220 * gib, GPUs: 1, GPUVendor: "nvidia"}
	if q, ok := capacity(m, 30, 0, false)["nvidia.com/gpu"]; ok {
		t.Errorf("%s GPUs before the device plugin announced them", q.String())
	}
	if q := capacity(m, 30, 0, true)["nvidia.com/gpu"]; q.Value() != 1 {
		t.Errorf("%s GPUs, want 1", q.String())
	}
}

func TestProviderIDLowercasesResourceGroupOnly(t *testing.T) {
	m := Machine{ID: "/subscriptions/S-1/resourceGroups/MC_Lab_EastUS/providers/Microsoft.Compute/virtualMachines/AKS-Vm1"}
	const want = "azure:///subscriptions/S-1/resourceGroups/mc_lab_eastus/providers/Microsoft.Compute/virtualMachines/AKS-Vm1"
	if got := m.ProviderID(); got != want {
		t.Errorf("provider ID %s\nwant        %s", got, want)
	}
}

func TestCloudLabelsOfZonalAndRegionalMachines(t *testing.T) {
	for _, c := range []struct{ zone, topology, disk string }{{"2", "eastus-2", "eastus-2"}, {"", "0", ""}} {
		labels := cloudLabels(Machine{Size: "Standard_D2s_v5", Region: "EastUS", Zone: c.zone})
		if labels[corev1.LabelTopologyZone] != c.topology || labels[diskTopology] != c.disk || labels[corev1.LabelTopologyRegion] != "eastus" {
			t.Errorf("zone %q: %v", c.zone, labels)
		}
	}
}
