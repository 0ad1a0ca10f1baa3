package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

// Files in the folder's pki/.
const (
	caCert            = "ca.crt"
	caKey             = "ca.key"
	serviceAccountKey = "service-account.key"
	servingCert       = "serving.crt"
	servingKey        = "serving.key"
	kubeletClientCert = "kubelet-client.crt"
	kubeletClientKey  = "kubelet-client.key"
	proxyClientCert   = "proxy-client.crt"
	proxyClientKey    = "proxy-client.key"
	bootstrapToken    = "bootstrap-token"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
)

// identity is a client of the API server: who it is and which groups it is in,
// as its certificate says (common name and organizations).
type identity struct {
	file   string // name of its kubeconfig below kubeconfigs/
	user   string
	groups []string
}

// admin is the identity for people, and nap the one of nap's controller.
const (
	admin = "admin"
	nap   = "nap"
)

// identities are all clients that get a kubeconfig. The scheduler and the
// controller manager have the users that Kubernetes' own RBAC rules name. The
// user nap has no rights but those that the lab's manifests grant.
func identities() []identity {
	return []identity{
		{file: admin, user: "lab-admin", groups: []string{"system:masters"}},
		{file: Scheduler, user: "system:kube-scheduler"},
		{file: ControllerManager, user: "system:kube-controller-manager"},
		{file: nap, user: nap},
	}
}

// KubeletClient is the user that the API server is to kubelets, ProxyClient who it is to
// API servers to which it passes requests on.
const (
	KubeletClient = "nap-lab-kubelet-client"
	ProxyClient   = "nap-lab-front-proxy"
)

// MetricsServer is the name of the server of the Metrics API in the cluster.
const MetricsServer = "nap-lab-metrics.kube-system.svc"

// authority signs certificates. Its key also signs the node certificates that
// the controller manager issues.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// pkiFiles makes what is missing in pki/ and returns the authority and the
// bootstrap token. The authority, the service account key and the token are made
// once, because what is stored in etcd depends on them; the serving certificate
// is made again at each start and so never runs out.
func pkiFiles(l layout, serverName string, now time.Time) (*authority, string, error) {
	ca, err := loadAuthority(l)
	if errors.Is(err, fs.ErrNotExist) {
		ca, err = newAuthority(l, now)
	}
	if err != nil {
		return nil, "", fmt.Errorf("certificate authority: %w", err)
	}
	if _, err := os.Stat(l.pki(serviceAccountKey)); errors.Is(err, fs.ErrNotExist) {
		_, keyPEM, err := newKey()
		if err != nil {
			return nil, "", fmt.Errorf("service account key: %w", err)
		}
		if err := writeSecret(l.pki(serviceAccountKey), keyPEM); err != nil {
			return nil, "", fmt.Errorf("service account key: %w", err)
		}
	}
	cert, key, err := ca.serving(serverName, now)
	if err != nil {
		return nil, "", fmt.Errorf("serving certificate: %w", err)
	}
	if err := errors.Join(writeSecret(l.pki(servingCert), cert), writeSecret(l.pki(servingKey), key)); err != nil {
		return nil, "", fmt.Errorf("serving certificate: %w", err)
	}
	for _, of := range []struct{ user, cert, key string }{
		{KubeletClient, kubeletClientCert, kubeletClientKey}, {ProxyClient, proxyClientCert, proxyClientKey},
	} {
		if err := ca.writeClient(l, of.user, of.cert, of.key, now); err != nil {
			return nil, "", fmt.Errorf("certificate of the API server as %s: %w", of.user, err)
		}
	}
	token, err := tokenFile(l.pki(bootstrapToken))
	if err != nil {
		return nil, "", fmt.Errorf("bootstrap token: %w", err)
	}
	return ca, token, nil
}

func newAuthority(l layout, now time.Time) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := certificate(pkix.Name{CommonName: "nap-lab"}, now, authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := writeSecret(l.pki(caKey), keyPEM); err != nil {
		return nil, err
	}
	if err := writeSecret(l.pki(caCert), pemBlock("CERTIFICATE", der)); err != nil {
		return nil, err
	}
	return loadAuthority(l)
}

func loadAuthority(l layout) (*authority, error) {
	certPEM, err := os.ReadFile(l.pki(caCert))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(l.pki(caKey))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("%s and %s: not PEM; delete the lab's folder and start again", l.pki(caCert), l.pki(caKey))
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.pki(caCert), err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.pki(caKey), err)
	}
	return &authority{cert: cert, key: key, pem: certPEM}, nil
}

// serving issues the one certificate that every server of the lab shows. All of
// them listen on loopback; the API server has a name in DNS besides.
func (a *authority) serving(serverName string, now time.Time) (cert, key []byte, err error) {
	template, err := certificate(pkix.Name{CommonName: "nap-lab-serving"}, now, certificateLifetime)
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", MetricsServer, serverName}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstServiceIP)}
	return a.issue(template)
}

// client issues the certificate of an identity.
func (a *authority) client(id identity, now time.Time) (cert, key []byte, err error) {
	template, err := certificate(pkix.Name{CommonName: id.user, Organization: id.groups}, now, certificateLifetime)
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// writeClient issues the certificate of a user without a kubeconfig.
func (a *authority) writeClient(l layout, user, certFile, keyFile string, now time.Time) error {
	cert, key, err := a.client(identity{user: user}, now)
	if err != nil {
		return err
	}
	return errors.Join(writeSecret(l.pki(certFile), cert), writeSecret(l.pki(keyFile), key))
}

func (a *authority) issue(template *x509.Certificate) (cert, key []byte, err error) {
	signer, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, signer.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	return pemBlock("CERTIFICATE", der), keyPEM, nil
}

// certificate is the common part of all templates. Validity starts a minute ago,
// because clocks are compared with second precision.
func certificate(subject pkix.Name, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pemBlock("EC PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// tokenFile reads the bootstrap token, or makes one: six characters that name
// it, a dot, and sixteen that are secret.
func tokenFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := randomText(6) + "." + randomText(16)
	return token, writeSecret(path, []byte(token+"\n"))
}

// randomText returns n characters of a to z and 2 to 7, five random bits each.
func randomText(n int) string { return strings.ToLower(rand.Text()[:n]) }
