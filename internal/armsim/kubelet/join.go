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
	"net"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
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
// that is not signed is made again, as kubelets do.
const (
	firstPoll      = 100 * time.Millisecond
	longestPoll    = 3 * time.Second
	signingTimeout = 15 * time.Minute
)

// joiner takes machines from their boot to a registered node, with nothing but
// their boot data.
type joiner struct {
	cfg         Config
	connections connections
	registry    *registry
	wake        func(id string) // has a machine worked on
	registered  func(v *vm)     // told of each machine that has become a node
}

// advance moves a machine to its next phase and has it worked on at once.
func (j *joiner) advance(v *vm, p Phase) {
	v.life.enter(p, "", j.cfg.Clock.Now())
	j.wake(v.machine.ID)
}

// start reads the boot data once the machine has booted. A machine whose
// boot data is unusable stays without a node for good.
func (j *joiner) start(v *vm) time.Duration {
	if left := v.bootedAt.Add(j.cfg.Delays.Register).Sub(j.cfg.Clock.Now()); left > 0 {
		return left
	}
	boot, err := bootdata.Read([]byte(v.machine.CustomData))
	if err == nil && v.machine.Broken != nil {
		err = v.machine.Broken
	}
	if failure := (*bootdata.Failure)(nil); errors.As(err, &failure) {
		j.end(v, failure)
		return 0
	}
	if err = errors.Join(v.machine.validate(), err); err != nil {
		j.giveUp(v, "the kubelet does not start: "+err.Error())
		return 0
	}
	v.boot = boot
	j.advance(v, Provisioning)
	return 0
}

// provisionPoll is how often a machine asks for a name or tries to connect.
const provisionPoll = time.Second

// provision looks for the API server as the provisioning scripts do, and then starts the
// kubelet. The scripts do not wait for it: one that ends again at once is no failure of
// theirs.
func (j *joiner) provision(ctx context.Context, v *vm) time.Duration {
	_, since, _ := v.life.current()
	waited := j.cfg.Clock.Since(since)
	if net.ParseIP(v.boot.Name) == nil && !j.cfg.Network.knows(v.boot.Name) {
		if waited < j.cfg.Delays.Lookup {
			return min(provisionPoll, j.cfg.Delays.Lookup-waited)
		}
		j.end(v, bootdata.LookupFailed(v.boot.Name))
		return 0
	}
	if err := j.connections.reach(ctx, v.boot); err != nil {
		if waited < j.cfg.Delays.Connect {
			return min(provisionPoll, j.cfg.Delays.Connect-waited)
		}
		j.end(v, bootdata.ConnectFailed(v.boot.Name, err))
		return 0
	}
	err := v.boot.StartKubelet()
	j.end(v, nil)
	if err != nil {
		j.giveUp(v, "the kubelet does not start: "+err.Error())
		return 0
	}
	if len(v.cert.Certificate) > 0 { // it has rebooted
		v.join.cert = v.cert
		j.advance(v, Registering)
		return 0
	}
	j.advance(v, Bootstrapping)
	return 0
}

// end tells how the provisioning has ended; without a failure the machine goes on.
func (j *joiner) end(v *vm, failure *bootdata.Failure) {
	now := j.cfg.Clock.Now()
	if failure != nil {
		j.giveUp(v, failure.Error())
	}
	if j.cfg.Provisioned != nil {
		kubelet := now
		if failure != nil {
			kubelet = time.Time{}
		}
		j.cfg.Provisioned(v.machine.ID, bootdata.End(failure, v.bootedAt, kubelet, now))
	}
}

// giveUp leaves the machine without a node for good.
func (j *joiner) giveUp(v *vm, reason string) {
	v.life.enter(Failed, reason, j.cfg.Clock.Now())
	j.cfg.Logger.Warn("machine cannot become a node", "machine", v.machine.ID, "reason", reason)
}

// requestCertificate asks for a client certificate with the bootstrap token.
func (j *joiner) requestCertificate(ctx context.Context, v *vm) error {
	client, err := j.certificates(v.boot)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + v.machine.NodeName(), Organization: []string{"system:nodes"}},
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
	j.advance(v, AwaitingCertificate)
	return nil
}

func (j *joiner) certificates(b bootdata.Data) (*certclient.CertificatesV1Client, error) {
	config, httpClient, err := j.connections.withToken(b)
	if err != nil {
		return nil, err
	}
	return certclient.NewForConfigAndClient(config, httpClient)
}

// awaitCertificate looks whether the request was signed.
func (j *joiner) awaitCertificate(ctx context.Context, v *vm) (time.Duration, error) {
	client, err := j.certificates(v.boot)
	if err != nil {
		return 0, err
	}
	csr, err := client.CertificateSigningRequests().Get(ctx, v.join.request, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		j.advance(v, Bootstrapping)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading certificate signing request %s: %w", v.join.request, err)
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return j.startOver(v, fmt.Sprintf("certificate signing request %s: %s: %s %s", csr.Name, c.Type, c.Reason, c.Message)), nil
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return j.waitForSigner(v, csr), nil
	}
	key, err := x509.MarshalECPrivateKey(v.join.key)
	if err != nil {
		return 0, fmt.Errorf("encoding the key: %w", err)
	}
	v.join.cert, err = tls.X509KeyPair(csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))
	if err != nil {
		return j.startOver(v, fmt.Sprintf("certificate of signing request %s: %s", csr.Name, err)), nil
	}
	j.advance(v, Registering)
	return 0, nil
}

// startOver makes a new request after a pause that grows.
func (j *joiner) startOver(v *vm, reason string) time.Duration {
	v.life.enter(Bootstrapping, reason, j.cfg.Clock.Now())
	v.join.denials++
	return min(firstRetry<<min(v.join.denials, 10), lastRetry)
}

// waitForSigner notes what is missing and says when to look again.
func (j *joiner) waitForSigner(v *vm, csr *certificatesv1.CertificateSigningRequest) time.Duration {
	missing := "is not approved yet"
	if len(csr.Status.Conditions) > 0 {
		missing = "is approved but not signed yet"
	}
	v.life.blame("certificate signing request " + csr.Name + " " + missing)
	_, since, _ := v.life.current()
	expired := j.cfg.Clock.Since(since) > signingTimeout
	if expired {
		j.advance(v, Bootstrapping)
		return 0
	}
	v.join.polls++
	return min(firstPoll<<min(v.join.polls, 10), longestPoll)
}

// diskDriver is the CSI driver of Azure disks, diskTopology the label it spreads
// volumes by.
const (
	diskDriver   = "disk.csi.azure.com"
	diskTopology = "topology.disk.csi.azure.com/zone"
)

// register creates the Node and the CSINode with the node's own certificate.
func (j *joiner) register(ctx context.Context, v *vm) error {
	config, httpClient, err := j.connections.withCertificate(v.boot, v.join.cert)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	core, err := coreclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", v.boot.Server, err)
	}
	node, err := createNode(ctx, core.Nodes(), nodeOf(v, j.cfg))
	if err != nil {
		return err
	}
	storage, err := storageclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", v.boot.Server, err)
	}
	if _, err := storage.CSINodes().Create(ctx, csiNode(v, node), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering the disk driver in CSINode %s: %w", node.Name, err)
	}
	j.adopt(v, node)
	return nil
}

// createNode creates the Node, or takes the one that the same machine created
// before. A Node of another machine with this name has to be deleted first.
func createNode(ctx context.Context, nodes coreclient.NodeInterface, want *corev1.Node) (*corev1.Node, error) {
	node, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if err == nil {
		return node, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("registering node %s: %w", want.Name, err)
	}
	if node, err = nodes.Get(ctx, want.Name, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", want.Name, err)
	}
	if node.Spec.ProviderID != want.Spec.ProviderID {
		return nil, fmt.Errorf("node %s exists already for another machine, %s; waiting until it is deleted", want.Name, node.Spec.ProviderID)
	}
	return node, nil
}

// adopt makes the machine the kubelet of its node.
func (j *joiner) adopt(v *vm, node *corev1.Node) {
	cert := v.join.cert
	v.nodeUID, v.join = node.UID, joinAttempt{}
	v.life.blame("")
	if !j.registry.register(v, node.Name, cert) {
		return
	}
	j.advance(v, NotReady)
	j.registered(v)
}

// csiNode says how many data disks the disk driver can attach.
func csiNode(v *vm, node *corev1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{ownedBy(node.Name, node.UID)},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: diskDriver, NodeID: node.Name, TopologyKeys: []string{diskTopology},
			Allocatable: &storagev1.VolumeNodeResources{Count: &v.machine.MaxDataDisks},
		}}},
	}
}
