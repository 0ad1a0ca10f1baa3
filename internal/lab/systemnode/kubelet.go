package systemnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// serveKubelet answers the API server as a kubelet does, until ctx is done: logs and ports of pods.
func (n *Node) serveKubelet(ctx context.Context) error {
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(n.env.CA)
	certificate, err := tls.LoadX509KeyPair(n.env.ServingCert, n.env.ServingKey)
	if err != nil {
		return fmt.Errorf("certificate of the system node: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("port of the system node: %w", err)
	}
	address := net.JoinHostPort(nodeIP, strconv.Itoa(kubeletPort))
	n.env.Network.Route(address, listener.Addr().String())
	defer n.env.Network.Route(address, "")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.logs)
	for _, path := range []string{"/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"} {
		mux.HandleFunc("POST "+path, n.portForward)
		mux.HandleFunc("GET "+path, n.portForward)
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if peers := r.TLS.PeerCertificates; len(peers) == 0 || peers[0].Subject.CommonName != lab.KubeletClient {
				http.Error(w, "only the API server may ask", http.StatusForbidden)
				return
			}
			mux.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// logs writes the log of a container since it was started.
func (n *Node) logs(w http.ResponseWriter, r *http.Request) {
	worker := n.pods.find(r.PathValue("namespace"), r.PathValue("pod"))
	if worker == nil {
		http.Error(w, fmt.Sprintf("pod %s does not run on this node", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	for _, c := range worker.containers() {
		switch {
		case c.spec.Name != r.PathValue("container"):
			continue
		case c.process == "":
			return // a played container says nothing
		case query.Get("previous") == "true":
			http.Error(w, "the lab has the log of all starts in one; ask for it without --previous", http.StatusBadRequest)
			return
		}
		tail := -1
		if text := query.Get("tailLines"); text != "" {
			var err error
			if tail, err = strconv.Atoi(text); err != nil {
				http.Error(w, "tailLines is not a number", http.StatusBadRequest)
				return
			}
		}
		if err := follow(r.Context(), w, c.log(), c.logFrom, tail, query.Get("follow") == "true"); err != nil {
			n.log.Warn("log of a container", "pod", worker.key.String(), "error", err)
		}
		return
	}
	http.Error(w, fmt.Sprintf("the pod has no container %s", r.PathValue("container")), http.StatusNotFound)
}

// follow copies a file from an offset on, or its last lines, and with on what is added
// until ctx is done.
func follow(ctx context.Context, w http.ResponseWriter, path string, from int64, tail int, on bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if _, err := w.Write(lastLines(text, tail)); err != nil {
		return err
	}
	const every = 200 * time.Millisecond
	for on {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if _, err := io.Copy(w, file); err != nil {
			return err
		}
	}
	return nil
}

// lastLines are the last n lines of a text, all of them with n below 0.
func lastLines(text []byte, n int) []byte {
	switch {
	case n < 0:
		return text
	case n == 0:
		return nil
	}
	for i := len(text) - 2; i >= 0; i-- {
		if text[i] != '\n' {
			continue
		}
		if n--; n == 0 {
			return text[i+1:]
		}
	}
	return text
}
