package metricsapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// Name is what the service is called in the lab.
const Name = "metrics-api"

// registration are the objects by which the API server knows the API. AUTHORITY stands for
// the lab's certificate authority.
//
//go:embed registration.yaml
var registration []byte

// address is that of the Service in registration.yaml.
const address = "10.0.0.20:443"

// Service serves the Metrics API. It implements lab.Service.
type Service struct{}

// New makes the service.
func New() *Service { return &Service{} }

// Name implements lab.Service.
func (s *Service) Name() string { return Name }

// Run implements lab.Service: it serves until ctx is done.
func (s *Service) Run(ctx context.Context, env lab.Environment) error {
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(env.CA) {
		return errors.New("the lab's certificate authority is no certificate")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the Metrics API: %w", err)
	}
	server := &http.Server{
		Handler: proxied((&answers{client: client, now: time.Now}).handler()), ReadHeaderTimeout: 5 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients},
	}
	env.Network.Route(address, listener.Addr().String())
	defer env.Network.Route(address, "")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.ServeTLS(listener, env.ServingCert, env.ServingKey); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	g.Go(func() error {
		objects := strings.ReplaceAll(string(registration), "AUTHORITY", base64.StdEncoding.EncodeToString(env.CA))
		if err := lab.Apply(ctx, admin, []byte(objects)); err != nil {
			return err
		}
		env.Ready()
		return nil
	})
	return g.Wait()
}

// proxied lets in the API server alone, which has asked who the client is and what it may.
func proxied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isProxy := func(c *x509.Certificate) bool { return c.Subject.CommonName == lab.ProxyClient }
		if r.TLS == nil || !slices.ContainsFunc(r.TLS.PeerCertificates, isProxy) {
			http.Error(w, "ask the API server: it passes requests on", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
