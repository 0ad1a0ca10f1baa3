// Package etcd runs a single etcd member inside a process of its own, tuned for
// a lab: loopback only, plain HTTP, and by default without fsync, because a
// lab's data has to survive the death of its processes (the page cache does)
// but not the death of the machine.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// startTimeout bounds the time from start to a served client port. A member with
// data replays its log first, which takes seconds at most at a lab's size.
const startTimeout = time.Minute

// Options are the settings of the member, one flag each.
type Options struct {
	// DataDir is where the member keeps its log and its database. It is created
	// when missing; a member continues with the data that it finds.
	DataDir string
	// ClientPort is the TCP port on 127.0.0.1 for clients, 1 to 65535.
	ClientPort int
	// QuotaBytes is the size of the database at which etcd refuses writes.
	QuotaBytes int64
	// UnsafeNoFsync skips fsync. A crash of the machine may then lose or damage
	// the data; a crash of the process does not.
	UnsafeNoFsync bool
	// LogLevel is one of debug, info, warn, error, panic, fatal.
	LogLevel string
}

// DefaultOptions are the settings of a lab; DataDir and ClientPort are left to
// the caller.
func DefaultOptions() Options {
	return Options{QuotaBytes: 4 << 30, UnsafeNoFsync: true, LogLevel: "warn"}
}

// Config translates the options to etcd's own. It fails when a required option
// is missing or out of range, naming the flag.
func (o Options) Config() (*embed.Config, error) {
	if o.DataDir == "" {
		return nil, errors.New("--data-dir is required")
	}
	if o.ClientPort < 1 || o.ClientPort > 65535 {
		return nil, fmt.Errorf("--client-port=%d: must be between 1 and 65535", o.ClientPort)
	}
	if o.QuotaBytes <= 0 {
		return nil, fmt.Errorf("--quota-bytes=%d: must be greater than 0", o.QuotaBytes)
	}
	client := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", o.ClientPort)}
	// The peer listener cannot be switched off. Nothing connects to it, so
	// any free port serves.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	cfg := embed.NewConfig()
	cfg.Name = "lab"
	cfg.Dir = o.DataDir
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	cfg.ListenPeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.QuotaBackendBytes = o.QuotaBytes
	cfg.UnsafeNoFsync = o.UnsafeNoFsync
	cfg.LogLevel = o.LogLevel
	cfg.LogOutputs = []string{"stderr"}
	return cfg, nil
}

// NewCommand is "nap-lab etcd". It runs until SIGINT or SIGTERM and then closes
// the data cleanly.
func NewCommand() *cobra.Command {
	o := DefaultOptions()
	cmd := &cobra.Command{
		Use:          "etcd",
		Short:        "Run a single etcd member on 127.0.0.1",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return Run(ctx, o)
		},
	}
	cmd.SetContext(context.Background())
	f := cmd.Flags()
	f.StringVar(&o.DataDir, "data-dir", o.DataDir, "folder of the member's data (required)")
	f.IntVar(&o.ClientPort, "client-port", o.ClientPort, "TCP port on 127.0.0.1 for clients (required)")
	f.Int64Var(&o.QuotaBytes, "quota-bytes", o.QuotaBytes, "database size in bytes at which writes are refused")
	f.BoolVar(&o.UnsafeNoFsync, "unsafe-no-fsync", o.UnsafeNoFsync,
		"skip fsync: faster, and safe against the death of the process but not of the machine")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info, warn, error, panic or fatal")
	return cmd
}

// Run serves until the context is done or the member fails. It is meant for a
// process that ends afterwards: the data is closed, connections are not.
func Run(ctx context.Context, o Options) error {
	cfg, err := o.Config()
	if err != nil {
		return err
	}
	member, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd in %s on port %d: %w", o.DataDir, o.ClientPort, err)
	}
	// Stop closes the log and the database. Close would first wait for every
	// client to hang up, and the API server never does.
	defer member.Server.Stop()
	select {
	case <-member.Server.ReadyNotify():
	case err := <-member.Err():
		return fmt.Errorf("etcd failed while starting: %w", err)
	case <-ctx.Done():
		return nil
	case <-time.After(startTimeout):
		return fmt.Errorf("etcd in %s did not become ready within %s", o.DataDir, startTimeout)
	}
	select {
	case err := <-member.Err():
		return fmt.Errorf("etcd failed: %w", err)
	case <-ctx.Done():
		return nil
	}
}
