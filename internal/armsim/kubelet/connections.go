package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// requestTimeout bounds one request of a joining machine. An address that does
// not answer occupies a worker for dialTimeout.
const (
	requestTimeout = 20 * time.Second
	dialTimeout    = 5 * time.Second
)

// connections are those that machines join through with their bootstrap tokens.
// Machines with the same server and certificate authority share one: the token
// is in each request.
type connections struct {
	mu   sync.Mutex
	open map[string]*http.Transport // by server and certificate authority
}

// withToken returns a client configuration that knows nothing but the boot data.
func (c *connections) withToken(b bootdata.Data) (*rest.Config, *http.Client, error) {
	key := b.Server + "\n" + string(b.CA)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.open[key]
	if t == nil {
		var err error
		if t, err = newTransport(b, nil); err != nil {
			return nil, nil, err
		}
		if c.open == nil {
			c.open = map[string]*http.Transport{}
		}
		c.open[key] = t
	}
	return clientConfig(b), &http.Client{
		Timeout:   requestTimeout,
		Transport: transport.NewBearerAuthRoundTripper(b.Token, t),
	}, nil
}

// withCertificate returns a client configuration for a node's own certificate.
// The caller closes the client's idle connections.
func withCertificate(b bootdata.Data, cert tls.Certificate) (*rest.Config, *http.Client, error) {
	t, err := newTransport(b, &cert)
	if err != nil {
		return nil, nil, err
	}
	return clientConfig(b), &http.Client{Timeout: requestTimeout, Transport: t}, nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.open {
		t.CloseIdleConnections()
	}
	c.open = nil
}

func clientConfig(b bootdata.Data) *rest.Config {
	return &rest.Config{
		Host: b.Server, QPS: -1, UserAgent: "nap-lab-kubelet",
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// newTransport trusts only the certificate authority of the boot data.
func newTransport(b bootdata.Data, cert *tls.Certificate) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.CA) {
		return nil, errors.New(bootdata.KeyCA + ": no certificate in it")
	}
	c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if cert != nil {
		c.Certificates = []tls.Certificate{*cert}
	}
	return &http.Transport{
		TLSClientConfig: c, ForceAttemptHTTP2: true, TLSHandshakeTimeout: requestTimeout,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, IdleConnTimeout: time.Minute,
	}, nil
}
