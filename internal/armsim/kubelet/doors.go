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
)

// requestTimeout bounds one request of a joining machine. An address that does
// not answer occupies a worker for dialTimeout.
const (
	requestTimeout = 20 * time.Second
	dialTimeout    = 5 * time.Second
)

// doors are the connections that machines knock at with their bootstrap tokens.
// Machines with the same server and certificate authority share one: the token
// is in each request.
type doors struct {
	mu   sync.Mutex
	open map[string]*http.Transport
}

// withToken returns a client configuration that knows nothing but the boot data.
func (d *doors) withToken(b BootData) (*rest.Config, *http.Client, error) {
	key := b.Server + "\n" + string(b.CA)
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.open[key]
	if t == nil {
		var err error
		if t, err = newTransport(b, nil); err != nil {
			return nil, nil, err
		}
		if d.open == nil {
			d.open = map[string]*http.Transport{}
		}
		d.open[key] = t
	}
	return clientConfig(b), &http.Client{
		Timeout:   requestTimeout,
		Transport: transport.NewBearerAuthRoundTripper(b.Token, t),
	}, nil
}

// withCertificate returns a client configuration for a node's own certificate.
// The caller closes the client's idle connections.
func withCertificate(b BootData, cert tls.Certificate) (*rest.Config, *http.Client, error) {
	t, err := newTransport(b, &cert)
	if err != nil {
		return nil, nil, err
	}
	return clientConfig(b), &http.Client{Timeout: requestTimeout, Transport: t}, nil
}

func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.open {
		t.CloseIdleConnections()
	}
	d.open = nil
}

func clientConfig(b BootData) *rest.Config {
	return &rest.Config{
		Host: b.Server, QPS: -1, UserAgent: "nap-lab-kubelet",
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// newTransport trusts only the certificate authority of the boot data.
func newTransport(b BootData, cert *tls.Certificate) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.CA) {
		return nil, errors.New(KeyCA + ": no certificate in it")
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
