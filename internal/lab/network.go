package lab

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Network leads the API server to kubelets, pods and webhooks. Their addresses in the
// cluster are of the ranges for documentation (RFC 5737), because the API server refuses
// to speak to a loopback address of a pod, and all of them listen on loopback. The API
// server dials nothing in the cluster itself: it asks the supervisor, by CONNECT over a
// unix socket (its egress selector), and that dials what the address stands for.
type Network struct {
	socket string
	server *http.Server
	done   chan struct{}

	mu     sync.Mutex
	routes map[string]string // from host:port in the cluster to host:port on this machine
}

// longestSocket is how long the path of a unix socket may be on every system.
const longestSocket = 100

// newNetwork chooses the socket: in the folder where its path is short enough.
func newNetwork(l layout) *Network {
	socket := l.path("egress.sock")
	if len(socket) > longestSocket {
		sum := sha256.Sum256([]byte(l))
		socket = filepath.Join(os.TempDir(), "nap-lab-"+hex.EncodeToString(sum[:8])+".sock")
	}
	return &Network{socket: socket, routes: map[string]string{}}
}

// Route leads connections to an address of the cluster to one of this machine; both are
// host:port. An empty to ends that.
func (n *Network) Route(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to == "" {
		delete(n.routes, from)
		return
	}
	n.routes[from] = to
}

// leads is where connections to an address go. Loopback addresses, of webhooks that are
// given by URL, stand for themselves.
func (n *Network) leads(address string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to, ok := n.routes[address]; ok {
		return to, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return address, nil
	}
	return "", fmt.Errorf("nothing in the lab listens on %s", address)
}

// serve answers the API server until close.
func (n *Network) serve(log *slog.Logger) error {
	if err := os.Remove(n.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the API server's way into the cluster: %w", err)
	}
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		return fmt.Errorf("the API server's way into the cluster: %w", err)
	}
	if err := os.Chmod(n.socket, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	n.done = make(chan struct{})
	n.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect {
				http.Error(w, "CONNECT alone is answered here", http.StatusMethodNotAllowed)
				return
			}
			if err := n.connect(w, r); err != nil {
				log.Warn("no connection for the API server", "to", r.Host, "error", err)
			}
		}),
	}
	go func() {
		defer close(n.done)
		_ = n.server.Serve(listener) // always ErrServerClosed, or the listener is gone and so are we
	}()
	return nil
}

func (n *Network) close() {
	_ = n.server.Close()
	<-n.done
	_ = os.Remove(n.socket) // closing the listener has done so already
}

// dialTimeout bounds how long a connection on loopback may take.
const dialTimeout = 5 * time.Second

// connect answers one CONNECT, and lasts as long as the connection.
func (n *Network) connect(w http.ResponseWriter, r *http.Request) error {
	to, err := n.leads(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return err
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return err
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	pipe(here, buffered.Reader, there)
	return nil
}

// pipe copies both ways until either side ends.
func pipe(here net.Conn, received *bufio.Reader, there net.Conn) {
	ended := make(chan struct{}, 2)
	end := func(_ int64, _ error) { ended <- struct{}{} }
	go func() { end(io.Copy(there, received)) }()
	go func() { end(io.Copy(here, there)) }()
	<-ended
	_ = here.Close()
	_ = there.Close()
	<-ended
}
