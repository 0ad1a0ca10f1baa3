package systemnode

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// A kubelet's own limits (k8s.io/kubelet/config/v1beta1 streamingConnectionIdleTimeout,
// and the default of its streaming server).
const (
	forwardIdle     = 4 * time.Hour
	forwardCreation = 30 * time.Second
)

// portForward carries connections to ports of a pod, which is what kubectl port-forward
// asks of a kubelet through the API server.
func (n *Node) portForward(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("pod")
	worker := n.pods.find(r.PathValue("namespace"), name)
	if worker == nil {
		http.Error(w, fmt.Sprintf("pod %s does not run on this node", name), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, worker, name, string(worker.uid), options, forwardIdle, forwardCreation, portforward.SupportedProtocols)
}

// PortForward copies between a stream and a port of the pod until one of the two ends.
func (w *worker) PortForward(ctx context.Context, name, _ string, port int32, stream io.ReadWriteCloser) error {
	local, err := w.localPort(int(port))
	if err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", local)
	if err != nil {
		return fmt.Errorf("pod %s, port %d: %w", name, port, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite() // the pod may still answer
		}
		sent <- err
	}()
	if _, err := io.Copy(stream, conn); err != nil {
		return err
	}
	_ = stream.Close()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return nil
	case <-time.After(time.Second): // the pod has said all that it will
		return nil
	}
}

// localPort is where a port which a container of the pod declares listens on this machine.
func (w *worker) localPort(port int) (string, error) {
	for _, c := range w.containers() {
		if number, open := c.ports[port]; open {
			return local(number), nil
		}
	}
	return "", fmt.Errorf("no container that runs declares port %d", port)
}
