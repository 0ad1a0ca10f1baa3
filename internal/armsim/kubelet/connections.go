package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	network Network

	mu   sync.Mutex
	open map[string]*http.Transport // by server and certificate authority
}

// Network is what machines reach: addresses by host and port, such as
// "cluster.example:443". A host that is not in it is unknown to the machines' name servers.
type Network map[string]string

// knows reports whether the name of a host leads somewhere.
func (n Network) knows(host string) bool {
	for address := range n {
		if known, _, err := net.SplitHostPort(address); err == nil && known == host {
			return true
		}
	}
	return false
}

// dial connects with a host of the network.
func (n Network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	to, ok := n[address]
	if !ok {
		return nil, fmt.Errorf("failed to connect to %s port %s: Connection refused", host, port)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, protocol, to)
}

// reach asks the API server for its root, without a credential.
func (c *connections) reach(ctx context.Context, b bootdata.Data) error {
	t, err := c.transport(b)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Server, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: requestTimeout, Transport: t}).Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// withToken returns a client configuration that knows nothing but the boot data.
func (c *connections) withToken(b bootdata.Data) (*rest.Config, *http.Client, error) {
	t, err := c.transport(b)
	if err != nil {
		return nil, nil, err
	}
	return clientConfig(b), &http.Client{
		Timeout:   requestTimeout,
		Transport: transport.NewBearerAuthRoundTripper(b.Token, t),
	}, nil
}

// transport is the connection of all machines with the same server and authority.
func (c *connections) transport(b bootdata.Data) (*http.Transport, error) {
	key := b.Server + "\n" + string(b.CA)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.open[key]
	if t == nil {
		var err error
		if t, err = c.newTransport(b, nil); err != nil {
			return nil, err
		}
		if c.open == nil {
			c.open = map[string]*http.Transport{}
		}
		c.open[key] = t
	}
	return t, nil
}

// withCertificate returns a client configuration for a node's own certificate.
// The caller closes the client's idle connections.
func (c *connections) withCertificate(b bootdata.Data, cert tls.Certificate) (*rest.Config, *http.Client, error) {
	t, err := c.newTransport(b, &cert)
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
func (c *connections) newTransport(b bootdata.Data, cert *tls.Certificate) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.CA) {
		return nil, errors.New("no certificate in the cluster's certificate authority")
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: c.network.dial,
		TLSHandshakeTimeout: requestTimeout, IdleConnTimeout: time.Minute,
	}, nil
}
