package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// apiServer is the name of the API server in boot data.
const apiServer = "lab.hcp.eastus.azmk8s.io"

// reaching is the network in which the API server is at an address.
func reaching(address string) Network { return Network{apiServer + ":443": address} }

// customData are boot data with which a machine joins, changed by the test.
func customData(t *testing.T, ca []byte, change ...func(*bootdata.AKSNode)) string {
	t.Helper()
	n := bootdata.AKSNode{
		APIServer: apiServer, CA: ca, Token: "abcdef.0123456789abcdef", SubscriptionID: "s", ResourceGroup: "MC_rg", Location: "eastus",
		Pool: "system", Mode: "System", MaxPods: 110, Version: "1.37.1", ClusterDNS: "10.0.0.10", VCPUs: 2, MemoryBytes: 8 * gib,
	}
	for _, f := range change {
		f(&n)
	}
	data, err := n.CustomData()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// authority is a certificate authority for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour),
	}, nil, &key.PublicKey, key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func sign(t *testing.T, template, parent *x509.Certificate, public any, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// gate is the part of an API server that a joining machine meets: it demands
// the token for certificates and a node's certificate for the node.
type gate struct {
	t      *testing.T
	ca     authority
	token  string
	client *fake.Clientset // where accepted nodes go
	deny   bool

	mu      sync.Mutex
	pending map[string]*certificatesv1.CertificateSigningRequest
	polls   int
}

// start serves until the test ends and returns the address.
func (g *gate) start() string {
	g.pending = map[string]*certificatesv1.CertificateSigningRequest{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/certificates.k8s.io/v1/certificatesigningrequests", g.request)
	mux.HandleFunc("GET /apis/certificates.k8s.io/v1/certificatesigningrequests/{name}", g.poll)
	mux.HandleFunc("POST /api/v1/nodes", g.node)
	mux.HandleFunc("GET /api/v1/nodes/{name}", g.getNode)
	mux.HandleFunc("POST /apis/storage.k8s.io/v1/csinodes", g.csiNode)
	s := httptest.NewUnstartedServer(mux)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	der := sign(g.t, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{apiServer}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, g.ca.cert, &key.PublicKey, g.ca.key)
	clients := x509.NewCertPool()
	clients.AddCert(g.ca.cert)
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: clients,
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	g.t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

func (g *gate) request(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+g.token {
		refuse(w, apierrors.NewUnauthorized("invalid bearer token"))
		return
	}
	var csr certificatesv1.CertificateSigningRequest
	if !read(w, r, &csr) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	csr.Name = csr.GenerateName + "1"
	g.pending[csr.Name] = &csr
	answer(w, &csr, "certificates.k8s.io/v1", "CertificateSigningRequest")
}

// poll signs at the second look.
func (g *gate) poll(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	csr := g.pending[r.PathValue("name")]
	g.polls++
	switch {
	case csr == nil:
		refuse(w, apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), r.PathValue("name")))
		return
	case g.deny:
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "NotToday"}}
	case g.polls > 1:
		block, _ := pem.Decode(csr.Spec.Request)
		asked, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		der := sign(g.t, &x509.Certificate{
			SerialNumber: big.NewInt(3), Subject: asked.Subject, NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, g.ca.cert, asked.PublicKey, g.ca.key)
		csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	answer(w, csr, "certificates.k8s.io/v1", "CertificateSigningRequest")
}

// asNode reports whether the caller proved to be the node.
func asNode(w http.ResponseWriter, r *http.Request, name string) bool {
	if certs := r.TLS.PeerCertificates; len(certs) == 0 ||
		certs[0].Subject.CommonName != "system:node:"+name || certs[0].Subject.Organization[0] != "system:nodes" {
		refuse(w, apierrors.NewForbidden(corev1.Resource("nodes"), name, nil))
		return false
	}
	return true
}

func (g *gate) node(w http.ResponseWriter, r *http.Request) {
	var n corev1.Node
	if !read(w, r, &n) || !asNode(w, r, n.Name) {
		return
	}
	n.UID = types.UID("uid-" + n.Name)
	if _, err := g.client.CoreV1().Nodes().Create(r.Context(), &n, metav1.CreateOptions{}); err != nil {
		refuse(w, apierrors.NewAlreadyExists(corev1.Resource("nodes"), n.Name))
		return
	}
	answer(w, &n, "v1", "Node")
}

func (g *gate) getNode(w http.ResponseWriter, r *http.Request) {
	if !asNode(w, r, r.PathValue("name")) {
		return
	}
	n, err := g.client.CoreV1().Nodes().Get(r.Context(), r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		refuse(w, apierrors.NewNotFound(corev1.Resource("nodes"), r.PathValue("name")))
		return
	}
	answer(w, n, "v1", "Node")
}

func (g *gate) csiNode(w http.ResponseWriter, r *http.Request) {
	var n storagev1.CSINode
	if !read(w, r, &n) || !asNode(w, r, n.Name) {
		return
	}
	_, _ = g.client.StorageV1().CSINodes().Create(r.Context(), &n, metav1.CreateOptions{})
	answer(w, &n, "storage.k8s.io/v1", "CSINode")
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, o any, version, kind string) {
	data, err := json.Marshal(o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	typed := strings.Replace(string(data), "{", `{"apiVersion":"`+version+`","kind":"`+kind+`",`, 1)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(typed))
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	data, _ := json.Marshal(err.ErrStatus)
	_, _ = w.Write([]byte(strings.Replace(string(data), "{", `{"apiVersion":"v1","kind":"Status",`, 1)))
}

// aMachine is a zonal machine with the boot script.
func aMachine(script string) Machine {
	return Machine{
		ID:           "/subscriptions/s/resourceGroups/MC_rg/providers/Microsoft.Compute/virtualMachines/aks-general-x1",
		ComputerName: "AKS-General-X1", Size: "Standard_D2s_v5", VCPUs: 2, MemoryBytes: 8 * gib, Arch: "amd64",
		MaxDataDisks: 4, OSDiskGB: 128, Region: "eastus", Zone: "1", PrivateIP: "10.224.0.4", CustomData: script,
	}
}

// runKubelets runs kubelets on the client until the test ends.
func runKubelets(t *testing.T, client *fake.Clientset, cfg Config) *Kubelets {
	t.Helper()
	f, err := newKubelets(cfg.withDefaults(), client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// eventually waits for a condition that real network traffic brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never happened: " + what)
		}
	}
}

func TestMachineJoinsWithItsOwnCredentials(t *testing.T) {
	client := fake.NewClientset()
	g := &gate{t: t, ca: newAuthority(t), token: "abcdef.0123456789abcdef", client: client}
	address := g.start()
	ends := make(chan bootdata.Result, 1)
	f := runKubelets(t, client, Config{Network: reaching(address), Provisioned: func(_ string, end bootdata.Result) { ends <- end }})
	m := aMachine(customData(t, g.ca.pem, func(n *bootdata.AKSNode) {
		n.Labels, n.Taints = map[string]string{"a": "b"}, []string{"karpenter.sh/unregistered:NoExecute"}
	}))
	f.Booted(m)
	eventually(t, "the machine is ready", func() bool { s, _ := f.Status(m.ID); return s.Phase == Ready })

	if end := <-ends; end.ExitCode != 0 || !strings.Contains(end.Stdout, `"ExitCode":"0"`) {
		t.Errorf("the provisioning ended with %+v", end)
	}
	n, err := client.CoreV1().Nodes().Get(t.Context(), "aks-general-x1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Spec.ProviderID != m.ProviderID() {
		t.Errorf("provider ID %q", n.Spec.ProviderID)
	}
	for key, want := range map[string]string{
		"a": "b", corev1.LabelHostname: "aks-general-x1", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		corev1.LabelInstanceTypeStable: "Standard_D2s_v5", corev1.LabelTopologyZone: "eastus-1", diskTopology: "eastus-1",
	} {
		if n.Labels[key] != want {
			t.Errorf("label %s=%q, want %q", key, n.Labels[key], want)
		}
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "karpenter.sh/unregistered" {
		t.Errorf("taints %v: want the one of the boot data, without the one that waits for the cloud", n.Spec.Taints)
	}
	if readiness(n) != corev1.ConditionTrue || n.Status.NodeInfo.KubeletVersion != "v1.37.1" {
		t.Errorf("ready %q, version %q", readiness(n), n.Status.NodeInfo.KubeletVersion)
	}
	csi, err := client.StorageV1().CSINodes().Get(t.Context(), n.Name, metav1.GetOptions{})
	if err != nil || *csi.Spec.Drivers[0].Allocatable.Count != 4 {
		t.Errorf("CSINode %+v, error %v", csi, err)
	}
	eventually(t, "a heartbeat", func() bool {
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), n.Name, metav1.GetOptions{})
		return err == nil
	})
}

// The bootstrap token has ended when the machine reboots.
func TestRebootedMachineComesBackWithItsCertificate(t *testing.T) {
	client := fake.NewClientset()
	g := &gate{t: t, ca: newAuthority(t), token: "abcdef.0123456789abcdef", client: client}
	f := runKubelets(t, client, Config{Network: reaching(g.start())})
	m := aMachine(customData(t, g.ca.pem))
	f.Booted(m)
	ready := func() bool { s, _ := f.Status(m.ID); return s.Phase == Ready }
	eventually(t, "the machine is ready", ready)
	node := func() *corev1.Node {
		t.Helper()
		n, err := client.CoreV1().Nodes().Get(t.Context(), "aks-general-x1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := node()
	f.Gone(m.ID)
	g.token = "abcdef.fedcba9876543210"
	f.Booted(m)
	eventually(t, "the machine is ready again", ready)
	if after := node(); before.UID != after.UID || before.Status.NodeInfo.BootID == after.Status.NodeInfo.BootID {
		t.Errorf("node %s with boot %s, before %s with %s: want the same node and another boot",
			after.UID, after.Status.NodeInfo.BootID, before.UID, before.Status.NodeInfo.BootID)
	}
	f.Gone(m.ID)
	if got := len(f.registry.disks); got != 1 {
		t.Errorf("%d disks are kept, want one", got)
	}
}

func TestMachineThatMayNotJoinReportsWhy(t *testing.T) {
	good, other := newAuthority(t), newAuthority(t)
	cases := map[string]struct {
		data    string                  // instead of those of a machine that joins
		change  func(*bootdata.AKSNode) // of them
		network Network                 // instead of one with the API server
		deny    bool
		node    *corev1.Node // exists before
		want    string
		end     string // of the provisioning; empty where it never ends, 0 where it knows nothing of the failure
	}{
		"unusable boot data": {data: "echo hello", want: "cloud-init ignores them"},
		"no configuration":   {data: "#cloud-boothook\n#!/bin/bash\nbash " + launcherPath + "\n", want: "write no"},
		"version v2":         {data: versionTwo(t, good.pem), want: "unsupported version: v2", end: `"ExitCode":"240"`},
		"URL as server name": {change: func(n *bootdata.AKSNode) { n.APIServer = "https://" + apiServer }, want: "exit code 52", end: `"ExitCode":"52"`},
		"port in server name": {
			change: func(n *bootdata.AKSNode) { n.APIServer = apiServer + ":443" }, want: "exit code 52", end: `"ExitCode":"52"`},
		"unknown server name": {network: Network{}, want: "NXDOMAIN", end: `"ExitCode":"52"`},
		"server that does not listen": {
			network: Network{apiServer + ":443": "127.0.0.1:1"}, want: "connection refused", end: `"ExitCode":"51"`},
		"wrong certificate authority": {change: func(n *bootdata.AKSNode) { n.CA = other.pem },
			want: "certificate signed by unknown authority", end: `"ExitCode":"51"`},
		"wrong token": {change: func(n *bootdata.AKSNode) { n.Token = "000000.0000000000000000" },
			want: "invalid bearer token", end: `"ExitCode":"0"`},
		"label that kubelets may not set": {change: func(n *bootdata.AKSNode) {
			n.Labels = map[string]string{"node-role.kubernetes.io/agent": ""}
		}, want: "node-role.kubernetes.io/agent", end: `"ExitCode":"0"`},
		"denied certificate": {deny: true, want: "NotToday", end: `"ExitCode":"0"`},
		"name taken by another machine": {
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aks-general-x1"}, Spec: corev1.NodeSpec{ProviderID: "azure:///old"}},
			want: "another machine, azure:///old", end: `"ExitCode":"0"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.node != nil {
				client = fake.NewClientset(c.node)
			}
			g := &gate{t: t, ca: good, token: "abcdef.0123456789abcdef", client: client, deny: c.deny}
			network := reaching(g.start())
			if c.network != nil {
				network = c.network
			}
			var end atomic.Pointer[bootdata.Result]
			f := runKubelets(t, client, Config{Logger: slog.New(slog.DiscardHandler), Network: network,
				Provisioned: func(_ string, e bootdata.Result) { end.Store(&e) }})
			data := c.data
			if data == "" && c.change == nil {
				data = customData(t, good.pem)
			} else if data == "" {
				data = customData(t, good.pem, c.change)
			}
			m := aMachine(data)
			f.Booted(m)
			eventually(t, "the reason "+c.want, func() bool { s, _ := f.Status(m.ID); return strings.Contains(s.Reason, c.want) })
			if v := f.registry.kubeletOf(m.NodeName()); v != nil {
				t.Error("the machine runs a node")
			}
			if c.end == "" {
				if e := end.Load(); e != nil {
					t.Errorf("the provisioning ended with %+v, want no end", e)
				}
				return
			}
			eventually(t, "the end "+c.end, func() bool { e := end.Load(); return e != nil && strings.Contains(e.Stdout, c.end) })
			if got, want := end.Load().ExitCode, min(1, len(c.end)-len(`"ExitCode":"0"`)); got != want {
				t.Errorf("the waiting command ended with %d, want %d", got, want)
			}
		})
	}
}

const launcherPath = "/opt/azure/containers/aks-node-controller-launcher.sh"

// versionTwo are boot data with a version of the contract that no node knows.
func versionTwo(t *testing.T, ca []byte) string {
	good := customData(t, ca)
	config := regexp.MustCompile(`(?s)base64 -d >[^\n]*\n(.*?)\nEND`).FindStringSubmatch(good)[1]
	plain, err := base64.StdEncoding.DecodeString(config)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := strings.Replace(string(plain), `"version":"v1"`, `"version":"v2"`, 1)
	return strings.Replace(good, config, base64.StdEncoding.EncodeToString([]byte(spoilt)), 1)
}
