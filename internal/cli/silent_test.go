package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// silentServer accepts connections and never answers; it is in the kubeconfig.
func silentServer(t *testing.T) (host, kubeconfig string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	host = "http://" + listener.Addr().String()
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + host + "\"}}]\n" +
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return host, kubeconfig
}

// TestSilentAPIServerEndsCommands: a server that accepts connections and never answers holds a
// command for no longer than one request may take, and not at all after an interrupt.
func TestSilentAPIServerEndsCommands(t *testing.T) {
	host, kubeconfig := silentServer(t)
	for name, m := range manners() {
		if m.no != "" || name == "diff" || name == "enable" { // which look at files and Azure first
			continue
		}
		args := append(strings.Fields(m.args), "--kubeconfig", kubeconfig)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := silentlyRun(t.Context(), t, 1, append(args, "--request-timeout=50ms")...)
			for _, want := range []string{host, "did not answer a request within 50ms", "--context"} {
				if !strings.Contains(ended, want) {
					t.Errorf("the error lacks %q: %s", want, ended)
				}
			}
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, interrupt)
			if ended := silentlyRun(ctx, t, 130, args...); !strings.Contains(ended, "interrupted") || !strings.Contains(ended, host) {
				t.Errorf("after an interrupt: %s", ended)
			}
		})
	}
}

// silentlyRun is what a command says that has to fail soon, and with an exit code.
func silentlyRun(ctx context.Context, t *testing.T, wanted int, args ...string) string {
	t.Helper()
	begun := time.Now()
	main := clitest.Main(func(_ context.Context, args []string, s command.Streams) int { return Main(ctx, args, "test", s) })
	_, errs, code := main.Run(t, args...)
	if took := time.Since(begun); code != wanted || took > 5*time.Second {
		t.Errorf("%v: exit code %d after %s", args, code, took)
	}
	return errs
}
