package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
)

// joinAttempt is what a joining kubelet keeps on its disk.
type joinAttempt struct {
	key     *ecdsa.PrivateKey
	request string // name of the certificate signing request
	polls   int
	denials int
	cert    tls.Certificate
}

// The wait for a certificate starts short and doubles up to a limit; a request
// that nobody signs is made anew, as kubelets do.
const (
	firstPoll      = 100 * time.Millisecond
	longestPoll    = 3 * time.Second
	signingTimeout = 15 * time.Minute
)

// syncMachine takes the next step of a machine's life. A step that fails is
// tried again with growing delay, and its error is the machine's reason.
func (f *Fleet) syncMachine(ctx context.Context, id string) (time.Duration, error) {
	v := f.machine(id)
	if v == nil {
		return 0, nil
	}
	var again time.Duration
	var err error
	switch phase := v.status().Phase; phase {
	case Booting:
		again = f.startKubelet(v)
	case Bootstrapping:
		err = f.requestCertificate(ctx, v)
	case AwaitingCertificate:
		again, err = f.awaitCertificate(ctx, v)
	case Registering:
		err = f.register(ctx, v)
	case NotReady, Ready:
		again, err = f.syncNode(ctx, v)
	}
	if err != nil {
		v.mu.Lock()
		news := v.reason != err.Error()
		v.reason = err.Error()
		v.mu.Unlock()
		if news && !v.registered() {
			f.tell(v, err.Error())
		}
	}
	return again, err
}

// tell says what keeps a machine from becoming a node.
func (f *Fleet) tell(v *vm, reason string) {
	if f.cfg.Trouble != nil {
		f.cfg.Trouble(v.ID, reason)
	}
}

// advance moves a machine to its next phase and has it worked on at once.
func (f *Fleet) advance(v *vm, p Phase) {
	v.mu.Lock()
	v.enter(p, f.cfg.Clock.Now())
	v.mu.Unlock()
	f.machines.queue.Add(v.ID)
}

// startKubelet reads the boot data once the machine has booted. A machine whose
// boot data is unusable stays without a node for good.
func (f *Fleet) startKubelet(v *vm) time.Duration {
	if left := v.bootedAt.Add(f.cfg.Delays.Register).Sub(f.cfg.Clock.Now()); left > 0 {
		return left
	}
	boot, err := ParseBootData(v.CustomData)
	if err = errors.Join(v.validate(), err); err != nil {
		v.mu.Lock()
		v.enter(Failed, f.cfg.Clock.Now())
		v.reason = "the kubelet does not start: " + err.Error()
		reason := v.reason
		v.mu.Unlock()
		f.tell(v, reason)
		f.cfg.Logger.Warn("machine cannot become a node", "machine", v.ID, "reason", err)
		return 0
	}
	v.boot = boot
	f.advance(v, Bootstrapping)
	return 0
}

// requestCertificate asks for a client certificate with the bootstrap token.
func (f *Fleet) requestCertificate(ctx context.Context, v *vm) error {
	client, err := f.certificates(v.boot)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + v.NodeName(), Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		return fmt.Errorf("making a certificate request: %w", err)
	}
	created, err := client.CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking %s for a client certificate with the bootstrap token: %w", v.boot.Server, err)
	}
	v.join = joinAttempt{key: key, request: created.Name, denials: v.join.denials}
	f.advance(v, AwaitingCertificate)
	return nil
}

func (f *Fleet) certificates(b BootData) (*certclient.CertificatesV1Client, error) {
	config, httpClient, err := f.doors.withToken(b)
	if err != nil {
		return nil, err
	}
	return certclient.NewForConfigAndClient(config, httpClient)
}

// awaitCertificate looks whether the request was signed.
func (f *Fleet) awaitCertificate(ctx context.Context, v *vm) (time.Duration, error) {
	client, err := f.certificates(v.boot)
	if err != nil {
		return 0, err
	}
	csr, err := client.CertificateSigningRequests().Get(ctx, v.join.request, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		f.advance(v, Bootstrapping)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading certificate signing request %s: %w", v.join.request, err)
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return f.startOver(v, fmt.Sprintf("certificate signing request %s: %s: %s %s", csr.Name, c.Type, c.Reason, c.Message)), nil
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return f.waitForSigner(v, csr), nil
	}
	key, err := x509.MarshalECPrivateKey(v.join.key)
	if err != nil {
		return 0, fmt.Errorf("encoding the key: %w", err)
	}
	v.join.cert, err = tls.X509KeyPair(csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))
	if err != nil {
		return f.startOver(v, fmt.Sprintf("certificate of signing request %s: %s", csr.Name, err)), nil
	}
	f.advance(v, Registering)
	return 0, nil
}

// startOver makes a new request after a pause that grows.
func (f *Fleet) startOver(v *vm, reason string) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.enter(Bootstrapping, f.cfg.Clock.Now())
	v.reason = reason
	v.join.denials++
	return min(firstRetry<<min(v.join.denials, 10), lastRetry)
}

// waitForSigner notes what is missing and says when to look again.
func (f *Fleet) waitForSigner(v *vm, csr *certificatesv1.CertificateSigningRequest) time.Duration {
	missing := "is not approved yet"
	if len(csr.Status.Conditions) > 0 {
		missing = "is approved but not signed yet"
	}
	v.mu.Lock()
	v.reason = "certificate signing request " + csr.Name + " " + missing
	expired := f.cfg.Clock.Since(v.since) > signingTimeout
	v.mu.Unlock()
	if expired {
		f.advance(v, Bootstrapping)
		return 0
	}
	v.join.polls++
	return min(firstPoll<<min(v.join.polls, 10), longestPoll)
}
