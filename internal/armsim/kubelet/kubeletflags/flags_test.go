package kubeletflags

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// closed are the flags without which no kubelet starts.
var closed = map[string]string{
	"--anonymous-auth": "false", "--authorization-mode": "Webhook", "--client-ca-file": CAFile, "--read-only-port": "0",
}

// with adds flags to those.
func with(flags ...string) nodeconfig.KubeletConfig {
	c := nodeconfig.KubeletConfig{KubeletFlags: maps.Clone(closed)}
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		c.KubeletFlags[name] = value
	}
	return c
}

func TestFlagsOfCommandLine(t *testing.T) {
	c := with("--register-with-taints=karpenter.sh/unregistered:NoExecute,gpu=yes:NoSchedule", "--max-pods=30",
		"--kube-reserved=cpu=100m,memory=1843Mi", "--eviction-hard=memory.available<750Mi,nodefs.available<10%,nodefs.inodesFree<5%",
		"--cloud-provider=external", "--cluster-dns=10.0.0.10", "--event-qps=0", "--node-labels=c=d")
	c.KubeletNodeLabels = map[string]string{"a": "b"}
	got, err := Of("1.35.1", c)
	if err != nil {
		t.Fatal(err)
	}
	want := Flags{
		Labels: map[string]string{"a": "b", "c": "d"},
		Taints: []corev1.Taint{
			{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
			{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
		},
		MaxPods: 30,
		KubeReserved: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1843Mi"),
		},
		EvictionMemory: Threshold{Bytes: 750 << 20}, EvictionDisk: Threshold{Fraction: 0.1},
		ExternalCloud: true, ClusterDNS: []string{"10.0.0.10"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Flags{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigurationFileUnderCommandLine(t *testing.T) {
	pods := int32(50)
	c := nodeconfig.KubeletConfig{
		EnableKubeletConfigFile: true, KubeletFlags: map[string]string{"--max-pods": "60"},
		KubeletConfigFileConfig: &nodeconfig.ConfigFile{
			MaxPods: &pods, ClusterDNS: []string{"10.0.0.10"}, KubeReserved: map[string]string{"cpu": "100m"},
			EvictionHard: map[string]string{"memory.available": "750Mi"},
		},
	}
	c.KubeletConfigFileConfig.Authentication.X509.ClientCAFile = CAFile
	f, err := Of("1.35.1", c)
	if err != nil {
		t.Fatal(err)
	}
	cpu := f.KubeReserved[corev1.ResourceCPU]
	if f.MaxPods != 60 || f.EvictionMemory.Bytes != 750<<20 || f.EvictionDisk != (Threshold{}) || cpu.MilliValue() != 100 || f.ClusterDNS == nil {
		t.Errorf("settings %+v", f)
	}
	c.KubeletConfigFileConfig.Authentication.Anonymous.Enabled = true
	if _, err := Of("1.35.1", c); err == nil || !strings.Contains(err.Error(), "--anonymous-auth=false") {
		t.Errorf("an open kubelet starts: %v", err)
	}
}

func TestKubeletThatDoesNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		config  nodeconfig.KubeletConfig
		want    []string
	}{
		"no flags": {config: nodeconfig.KubeletConfig{}, want: []string{
			"--anonymous-auth=false", "--authorization-mode=Webhook", "--client-ca-file=" + CAFile, "--read-only-port=0"}},
		"anonymous":             {config: with("--anonymous-auth=true"), want: []string{"every client on the network", "--anonymous-auth=false"}},
		"always allowed":        {config: with("--authorization-mode=AlwaysAllow"), want: []string{"--authorization-mode=Webhook"}},
		"read-only port":        {config: with("--read-only-port=10255"), want: []string{"--read-only-port=0"}},
		"authority elsewhere":   {config: with("--client-ca-file=/etc/ca.crt"), want: []string{"/etc/ca.crt", "no such file"}},
		"unknown flag":          {config: with("--of-mine=1"), want: []string{"unknown flag: --of-mine (Kubernetes 1.35)"}},
		"flag that was removed": {config: with("--pod-infra-container-image=x"), want: []string{"unknown flag: --pod-infra-container-image"}},
		"flag of later":         {version: "1.30.0", config: with("--fail-cgroupv1=false"), want: []string{"unknown flag: --fail-cgroupv1"}},
		"cloud config":          {version: "1.34.0", config: with("--cloud-config=x"), want: []string{"unknown flag: --cloud-config"}},
		"terminated volumes": {version: "v1.31.2", config: with("--keep-terminated-pod-volumes=false"),
			want: []string{"unknown flag: --keep-terminated-pod-volumes"}},
		"no dashes":            {config: with("max-pods=3"), want: []string{"max-pods=3: unknown command"}},
		"blank in value":       {config: with("--max-pods=3 4"), want: []string{"has blanks"}},
		"version":              {version: "latest", config: with(), want: []string{`"latest"`}},
		"cloud provider":       {config: with("--cloud-provider=azure"), want: []string{"want external"}},
		"label of the cluster": {config: with("--node-labels=node-role.kubernetes.io/master=x"), want: []string{"may not set"}},
		"restricted label":     {config: with("--node-labels=node-restriction.kubernetes.io/a=x"), want: []string{"may not set"}},
		"label value":          {config: with("--node-labels=a=b;c"), want: []string{`"b;c"`}},
		"taint without effect": {config: with("--register-with-taints=a=b"), want: []string{`"a=b"`, "key:Effect"}},
		"taint effect":         {config: with("--register-with-taints=a=b:Never"), want: []string{`"Never"`, "NoExecute"}},
		"taint key":            {config: with("--register-with-taints=a/b/c=d:NoSchedule"), want: []string{`"a/b/c"`}},
		"taint twice":          {config: with("--register-with-taints=a=b:NoSchedule,a=c:NoSchedule"), want: []string{"appear twice"}},
		"no pods":              {config: with("--max-pods=0"), want: []string{"--max-pods", "positive"}},
		"reserved of unknown":  {config: with("--kube-reserved=disk=1Gi"), want: []string{"--kube-reserved", `"disk"`}},
		"reserved malformed":   {config: with("--system-reserved=cpu=lots"), want: []string{"--system-reserved", `"lots"`}},
		"eviction signal":      {config: with("--eviction-hard=cpu<1"), want: []string{"--eviction-hard", "memory.available"}},
		"eviction over all":    {config: with("--eviction-hard=nodefs.available<200%"), want: []string{"200%"}},
		"DNS by name":          {config: with("--cluster-dns=dns.example"), want: []string{"--cluster-dns", "IP addresses"}},
		"node IP":              {config: with("--node-ip=nowhere"), want: []string{"--node-ip", "IP address"}},
		"several at once":      {config: with("--max-pods=0", "--of-mine=1"), want: []string{"--max-pods", "--of-mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			version := c.version
			if version == "" {
				version = "1.35.1"
			}
			_, err := Of(version, c.config)
			if err == nil {
				t.Fatal("it starts")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestFlagsOfVersions(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int
	}{
		{"keep-terminated-pod-volumes", 27, 30}, {"cloud-config", 27, 33}, {"pod-infra-container-image", 27, 34},
		{"image-credential-provider-config", 27, 37}, {"streaming-connection-idle-timeout", 27, 37}, {"max-pods", 27, 37}, {"fail-cgroupv1", 31, 37},
	} {
		for minor := 27; minor <= 37; minor++ {
			if got, want := Known(c.name, minor), minor >= c.first && minor <= c.last; got != want {
				t.Errorf("--%s in 1.%d: known %v, want %v", c.name, minor, got, want)
			}
		}
	}
	// The node's program takes this one out.
	if _, err := Of("1.34.0", with("--streaming-connection-idle-timeout=4h")); err != nil {
		t.Error(err)
	}
}
