package lab

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// through makes a connection to an address of the cluster, as the API server does.
func through(t *testing.T, n *Network, address string) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, "127.0.0.1")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, resp
}

func TestNetworkLeadsToWhatIsRouted(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the pod") }))
	defer pod.Close()
	here := pod.Listener.Addr().String()
	n := newNetwork(layout(t.TempDir()))
	if err := n.serve(slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	const address = "198.51.100.1:8080"
	if _, resp := through(t, n, address); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("an address without a route: %s", resp.Status)
	}
	n.Route(address, here)
	for _, to := range []string{address, here} {
		conn, resp := through(t, n, to)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", to, resp.Status)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		if text, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(text), "the pod") {
			t.Errorf("%s answers %q, %v", to, text, err)
		}
	}
	n.Route(address, "")
	if _, resp := through(t, n, address); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("an address that has lost its route: %s", resp.Status)
	}
}

func TestSocketPathIsShort(t *testing.T) {
	if n := newNetwork(layout("/lab")); n.socket != "/lab/egress.sock" {
		t.Errorf("the socket is %s", n.socket)
	}
	if n := newNetwork(layout("/" + strings.Repeat("long/", 40))); len(n.socket) > longestSocket {
		t.Errorf("the socket is %s, which is too long", n.socket)
	}
}
