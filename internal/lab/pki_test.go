package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func newFolder(t *testing.T) layout {
	t.Helper()
	l := layout(filepath.Join(t.TempDir(), "lab"))
	if err := l.create(); err != nil {
		t.Fatal(err)
	}
	return l
}

func parseCertificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAuthorityIsKeptAndServingCertificateRenewed(t *testing.T) {
	l := newFolder(t)
	now := time.Now()
	ca, token, err := pkiFiles(l, DefaultServerName, now)
	if err != nil {
		t.Fatal(err)
	}
	read := func(file string) string {
		data, err := os.ReadFile(l.pki(file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	serviceAccount, serving := read(serviceAccountKey), read(servingCert)

	again, tokenAgain, err := pkiFiles(l, DefaultServerName, now)
	if err != nil {
		t.Fatal(err)
	}
	if string(ca.pem) != string(again.pem) || token != tokenAgain || serviceAccount != read(serviceAccountKey) {
		t.Error("a second start replaced the authority, the token or the service account key; the data in etcd depends on them")
	}
	if serving == read(servingCert) {
		t.Error("a second start kept the serving certificate, which would run out")
	}
	if !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(token) {
		t.Errorf("bootstrap token %q does not have the form that Kubernetes wants", token)
	}
}

func TestServingCertificateForLoopbackOnly(t *testing.T) {
	l := newFolder(t)
	ca, _, err := pkiFiles(l, DefaultServerName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(l.pki(servingCert), l.pki(servingKey))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	verify := func(name string) error {
		_, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		return err
	}
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", DefaultServerName} {
		if err := verify(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verify("example.com") == nil {
		t.Error("the certificate is good for example.com")
	}
}

func TestKubeconfigPerIdentity(t *testing.T) {
	l := newFolder(t)
	now := time.Now()
	ca, _, err := pkiFiles(l, DefaultServerName, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := kubeconfigs(l, ca, "https://127.0.0.1:6443", now); err != nil {
		t.Fatal(err)
	}
	type who struct {
		User   string
		Groups []string
	}
	got := map[string]who{}
	for _, id := range identities() {
		path := l.kubeconfig(id.file)
		cfg, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		cert := parseCertificate(t, cfg.CertData)
		if err := cert.CheckSignatureFrom(ca.cert); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got[filepath.Base(path)] = who{cert.Subject.CommonName, cert.Subject.Organization}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %s, want 0600", path, mode)
		}
	}
	want := map[string]who{
		"kubeconfig":              {"lab-admin", []string{"system:masters"}},
		"kube-scheduler":          {"system:kube-scheduler", nil},
		"kube-controller-manager": {"system:kube-controller-manager", nil},
		"nap":                     {"nap", nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
}

func TestFolderOfOtherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layout(dir).create(); err == nil {
		t.Error("a folder with foreign files was accepted")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder was changed: %v", entries)
	}
}
