package bootdata

import (
	"crypto/x509"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"

	"encoding/base64"
	"encoding/pem"
	"errors"
	corev1 "k8s.io/api/core/v1"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// aCA is any certificate authority in PEM form.
func aCA(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func aNode(ca []byte) AKSNode {
	return AKSNode{APIServer: "c.hcp.eastus.azmk8s.io", CA: ca, Token: "abcdef.0123456789abcdef", SubscriptionID: "s", ResourceGroup: "MC_g",
		Location: "eastus", Pool: "system", Mode: "System", Labels: map[string]string{"team": "blue"}, NvidiaGPUs: true,
		Taints: []string{"gpu=yes:NoSchedule"}, MaxPods: 30, Version: "1.35.1", ClusterDNS: "10.0.0.10", VCPUs: 4, MemoryBytes: 16 << 30}
}

func TestManagedGPUsHaveAPluginWhereADriverIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*AKSNode)
		want   bool
	}{
		"managed":        {func(*AKSNode) {}, true},
		"without driver": {func(n *AKSNode) { n.NoGPUDriver = true }, false},
		"without GPUs":   {func(n *AKSNode) { n.NvidiaGPUs = false }, false},
	} {
		n := aNode(aCA(t))
		n.ManagedGPU = true
		c.change(&n)
		data, err := n.CustomData()
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.StartKubelet(); err != nil {
			t.Fatal(err)
		}
		if d.DevicePlugin != c.want || (d.Flags.Labels[exporterLabel] == "enabled") != c.want {
			t.Errorf("%s: plugin %v with labels %v, want %v", name, d.DevicePlugin, d.Flags.Labels, c.want)
		}
	}
}

func TestMachineOfAKSBootsFromItsCustomData(t *testing.T) {
	ca := aCA(t)
	data, err := aNode(ca).CustomData()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	if d.Server != "https://c.hcp.eastus.azmk8s.io:443" || d.Version != "v1.35.1" || d.Token != "abcdef.0123456789abcdef" ||
		string(d.CA) != string(ca) || !d.GPUDriver {
		t.Errorf("boot data %+v", d)
	}
	if d.DevicePlugin || d.Flags.Labels[exporterLabel] != "" {
		t.Error("a device plugin runs though AKS was not told to manage the GPUs")
	}
	if d.Flags.Labels["team"] != "blue" || d.Flags.Labels["kubernetes.azure.com/mode"] != "system" || d.Flags.MaxPods != 30 || !d.Flags.ExternalCloud {
		t.Errorf("labels %v, flags %+v", d.Flags.Labels, d.Flags)
	}
	if diff := cmp.Diff([]string{"10.0.0.10"}, d.Flags.ClusterDNS); diff != "" {
		t.Errorf("cluster DNS (-want +got):\n%s", diff)
	}
}

func TestCustomDataThatNoNodeBootsFrom(t *testing.T) {
	good, err := aNode(aCA(t)).CustomData()
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile(`(?s)base64 -d >[^\n]*\n(.*?)\nEND`).FindStringSubmatch(string(good))[1]
	plain, err := base64.StdEncoding.DecodeString(config)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, to string) []byte {
		if !strings.Contains(string(plain), old) {
			t.Fatalf("the configuration has no %s", old)
		}
		spoilt := base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(plain), old, to, 1)))
		return []byte(strings.Replace(string(good), config, spoilt, 1))
	}
	for name, c := range map[string]struct {
		data    []byte
		code    int // 0: nothing starts
		want    string
		kubelet string // why the kubelet does not start, where all before is well
	}{
		"variables":      {data: []byte("#!/bin/bash\nexport API_SERVER_NAME=c"), want: "custom data write no"},
		"mode":           {data: []byte(strings.Replace(string(good), "chmod 0600", "chmod 0644", 1)), code: 240, want: "every user of the machine can read it"},
		"other path":     {data: []byte(strings.ReplaceAll(string(good), "aks-node-controller-config.json", "config.json")), want: "write no"},
		"not started":    {data: []byte(strings.Replace(string(good), "nohup", "true", 1)), want: "start neither"},
		"started early":  {data: []byte(strings.Replace(string(good), "mkdir -p", "nohup /bin/bash "+launcher+"\nmkdir -p", 1)), want: "after the program that reads it"},
		"version":        {data: changed(`"v1"`, `"v2"`), code: 240, want: "unsupported version: v2"},
		"missing field":  {data: changed(`"location":"eastus"`, `"location":""`), code: 240, want: "cluster_config.location"},
		"wrong type":     {data: changed(`"version":"v1"`, `"version":1`), code: 240, want: "was read in part only"},
		"no kubelet":     {data: changed(`"1.35.1"`, `"latest"`), code: 204, want: `"latest"`},
		"no token":       {data: changed(`"abcdef.0123456789abcdef"`, `""`), kubelet: "no tls_bootstrapping_token"},
		"no sandbox":     {data: changed(`"pod_infra_container_image_url"`, `"container_image_url"`), kubelet: "sandbox_image is empty"},
		"secure":         {data: changed(`METHOD_BOOTSTRAP_TOKEN`, `METHOD_SECURE_TLS_BOOTSTRAPPING`), kubelet: "secure TLS bootstrapping"},
		"image only":     {data: changed(`"pre_provision_only":false`, `"pre_provision_only":true`), kubelet: "pre_provision_only"},
		"unknown flag":   {data: changed(`"--event-qps"`, `"--cloud-config"`), kubelet: "unknown flag: --cloud-config"},
		"open to all":    {data: changed(`"--anonymous-auth":"false"`, `"--anonymous-auth":"true"`), kubelet: "--anonymous-auth=false"},
		"label":          {data: changed(`"team"`, `"node-role.kubernetes.io/agent"`), kubelet: "may not set"},
		"unknown fields": {data: changed(`"version"`, `"later":1,"version"`)},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Read(c.data)
			if c.want != "" {
				failure := (*Failure)(nil)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %q", err, c.want)
				}
				if errors.As(err, &failure) != (c.code != 0) || failure != nil && failure.ExitCode != c.code || errors.Is(err, ErrNotStarted) != (c.code == 0) {
					t.Errorf("error %v, want exit code %d", err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := d.StartKubelet(); (err == nil) != (c.kubelet == "") || err != nil && !strings.Contains(err.Error(), c.kubelet) {
				t.Errorf("the kubelet: %v, want %q", err, c.kubelet)
			}
		})
	}
}

// The documents are what nap's own golden files hold; nothing of nap reads them here.
func TestGoldenCustomDataBoot(t *testing.T) {
	golden, err := filepath.Glob("../../../azure/bootstrap/testdata/*/custom-data.txt")
	if err != nil || len(golden) < 24 {
		t.Fatalf("%d golden documents, %v", len(golden), err)
	}
	for _, path := range golden {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Read(data)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(d.Name, ":/") || !x509.NewCertPool().AppendCertsFromPEM(d.CA) {
				t.Errorf("API server %q, authority %q", d.Name, d.CA)
			}
			err = d.StartKubelet()
			if err != nil && !strings.Contains(err.Error(), "secure TLS bootstrapping: ") {
				t.Error(err)
			}
			unregistered := slices.ContainsFunc(d.Flags.Taints, func(t corev1.Taint) bool { return t.Key == "karpenter.sh/unregistered" })
			if !unregistered || d.Flags.MaxPods == 0 || d.Flags.KubeReserved == nil || len(d.Flags.ClusterDNS) == 0 {
				t.Errorf("settings %+v", d.Flags)
			}
		})
	}
}

func TestEndOfProvisioning(t *testing.T) {
	boot := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		failure *Failure
		code    int
		stdout  []string
		stderr  string
	}{
		"success": {stdout: []string{`"ExitCode":"0"`, `"ExecDuration":"30"`, `"KubeletStartTime":"Sat 2026-08-01 10:00:20 UTC"`}},
		"name":    {failure: LookupFailed("https://c"), code: 1, stdout: []string{`"ExitCode":"52"`, "nslookup", `"KubeletStartTime":"n/a"`}, stderr: "exitCode=52"},
		"connect": {failure: ConnectFailed("c", errors.New("refused")), code: 1, stdout: []string{`"ExitCode":"51"`, "refused"}, stderr: "exitCode=51"},
		"configuration": {failure: &Failure{ExitCode: 240, Reason: "unsupported version: v2", early: true}, code: 1,
			stdout: []string{`{"ExitCode":"240","Error":"unsupported version: v2","Output":""}`}, stderr: "exitCode=240 error=unsupported version: v2"},
		"long output": {failure: &Failure{ExitCode: 99, Reason: strings.Repeat("x", 5000)}, code: 1, stdout: []string{`"Output":"` + strings.Repeat("x", 2999) + `\n"`}},
	} {
		t.Run(name, func(t *testing.T) {
			kubelet := boot.Add(20 * time.Second)
			if c.failure != nil {
				kubelet = time.Time{}
			}
			r := End(c.failure, boot, kubelet, boot.Add(30*time.Second))
			if r.ExitCode != c.code || !strings.Contains(r.Stderr, c.stderr) || (r.Stderr == "") != (c.code == 0) {
				t.Errorf("exit code %d, stderr %q", r.ExitCode, r.Stderr)
			}
			for _, want := range c.stdout {
				if !strings.Contains(r.Stdout, want) {
					t.Errorf("stdout lacks %q: %s", want, r.Stdout)
				}
			}
		})
	}
}
