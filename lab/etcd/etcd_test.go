package etcd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestInvalidOptionsNameFlag(t *testing.T) {
	good := DefaultOptions()
	good.DataDir, good.ClientPort = "/data", 2379
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no data folder": {func(o *Options) { o.DataDir = "" }, "--data-dir"},
		"no port":        {func(o *Options) { o.ClientPort = 0 }, "--client-port=0"},
		"port too high":  {func(o *Options) { o.ClientPort = 65536 }, "--client-port=65536"},
		"no quota":       {func(o *Options) { o.QuotaBytes = 0 }, "--quota-bytes=0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			if _, err := o.Config(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Config() error = %v, want one that names %s", err, tc.want)
			}
		})
	}
}

func TestMemberListensOnLoopback(t *testing.T) {
	o := DefaultOptions()
	o.DataDir, o.ClientPort = "/data", 2379
	cfg, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range append(cfg.ListenClientUrls, cfg.ListenPeerUrls...) {
		if u.Hostname() != "127.0.0.1" {
			t.Errorf("listens on %s, want 127.0.0.1", u.String())
		}
	}
}

func TestMemberServesAndStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.DataDir, o.ClientPort = t.TempDir(), l.Addr().(*net.TCPAddr).Port
	l.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()

	health := fmt.Sprintf("http://127.0.0.1:%d/readyz", o.ClientPort)
	deadline := time.Now().Add(startTimeout)
	for {
		resp, err := http.Get(health)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never answered 200, last error: %v", health, err)
		}
		select {
		case err := <-done:
			t.Fatalf("ended before it was ready: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run after cancel = %v, want nil", err)
	}
}
