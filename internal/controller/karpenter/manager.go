package karpenter

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/controller/leadership"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/detail"
	"github.com/nodeautoprovision/nap/internal/controller/metricsauth"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// WithOptions returns a context that carries Karpenter's options and the logger
// to its controllers.
func WithOptions(ctx context.Context, opts *options.Options, logger logr.Logger) context.Context {
	return log.IntoContext(options.ToContext(ctx, opts), logger)
}

// ManagerConfig is what a manager needs beside Karpenter's options.
type ManagerConfig struct {
	// REST reaches the API server. The manager uses copies of it.
	REST   *rest.Config
	Logger logr.Logger
	// MetricsBindAddress and HealthProbeBindAddress are host:port; port 0 takes a
	// free one and "0" alone switches the endpoint off.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	// SecureMetrics serves metrics and profiles over TLS, to users alone that the API
	// server knows and allows to. CertDir has tls.crt and tls.key; empty means a certificate
	// that is made at the start.
	SecureMetrics bool
	// DetailedMetrics serves those of each node, pod and NodeClaim too, and those of work
	// queues, requests and reconcilers.
	DetailedMetrics bool
	CertDir         string
	// ShutdownTimeout is how long running work may take to stop.
	ShutdownTimeout time.Duration
	// Election says when the lease changes hands. Lease is told of each renewal, and has
	// to be held for each write of the manager's client; nil without an election.
	Election leadership.Election
	Lease    *leadership.Lease
}

// NewManager returns a manager with leader election, probes, metrics and the
// field indexes that Karpenter's controllers read by. Nothing runs until it is
// started.
func NewManager(ctx context.Context, cfg ManagerConfig) (manager.Manager, error) {
	opts := options.FromContext(ctx)
	config := rest.CopyConfig(cfg.REST)
	config.QPS, config.Burst = float32(opts.KubeClientQPS), opts.KubeClientBurst
	// The lease has a client of its own: a busy moment must not delay its renewal.
	var lease resourcelock.Interface
	if !opts.DisableLeaderElection {
		var err error
		if lease, err = leaseOf(watched(cfg), opts, cfg.Election); err != nil {
			return nil, err
		}
	}
	if cfg.Lease != nil {
		config.Wrap(cfg.Lease.Guard)
	}
	warmup := !opts.DisableLeaderElection && !opts.DisableControllerWarmup
	// Two controllers may run in one process, each with its own manager.
	sharedNames := true
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                              scheme.Scheme,
		Logger:                              logging.IgnoreDebugEvents(cfg.Logger),
		LeaderElection:                      !opts.DisableLeaderElection,
		LeaderElectionID:                    opts.LeaderElectionName, // the metrics' name of it
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lease,
		LeaseDuration:                       &cfg.Election.LeaseDuration,
		RenewDeadline:                       &cfg.Election.RenewDeadline,
		RetryPeriod:                         &cfg.Election.RetryPeriod,
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			made, err := client.New(config, options)
			return cfg.Lease.Client(patchClient{made}), err
		},
		Metrics:                 metricsServer(cfg, opts.EnableProfiling),
		HealthProbeBindAddress:  cfg.HealthProbeBindAddress,
		GracefulShutdownTimeout: &cfg.ShutdownTimeout,
		BaseContext: func() context.Context {
			return WithOptions(context.Background(), opts, cfg.Logger)
		},
		Cache: cache.Options{
			// Most of a pod or a node is what nothing here reads.
			DefaultTransform: kube.Trim,
		},
		Controller: ctrlconfig.Controller{EnableWarmup: &warmup, SkipNameValidation: &sharedNames},
	})
	if err != nil {
		return nil, fmt.Errorf("building the controller manager: %w", err)
	}
	if err := indexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache())); err != nil {
		return nil, fmt.Errorf("adding the readiness probe: %w", err)
	}
	return mgr, nil
}

// watched reaches the API server for the election, and tells the lease of each renewal.
func watched(cfg ManagerConfig) *rest.Config {
	config := rest.CopyConfig(cfg.REST)
	config.ContentType = runtime.ContentTypeJSON // which the lease can read
	if cfg.Lease != nil {
		config.Wrap(cfg.Lease.WatchRenewals)
	}
	return config
}

// metricsServer serves metrics, and profiles where they are switched on.
func metricsServer(cfg ManagerConfig, profiles bool) server.Options {
	out := server.Options{BindAddress: cfg.MetricsBindAddress, ExtraHandlers: profiling(profiles)}
	shown := func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return handler, nil }
	if !cfg.DetailedMetrics {
		shown = detail.Filter(ctrlmetrics.Registry)
	}
	if !cfg.SecureMetrics {
		out.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) { return shown, nil }
		return out
	}
	out.SecureServing, out.CertDir = true, cfg.CertDir
	out.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		// Streams of HTTP/2 that are reset at once have cost servers dearly, and a
		// collector needs one request at a time.
		c.NextProtos = []string{"http/1.1"}
	}}
	out.FilterProvider = func(config *rest.Config, client *http.Client) (server.Filter, error) {
		connection, err := kubernetes.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("connecting the protection of metrics to the API server: %w", err)
		}
		asked := metricsauth.Filter(connection, clock.RealClock{})
		return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
			handler, err := shown(log, handler)
			if err != nil {
				return nil, err
			}
			return asked(log, handler)
		}, nil
	}
	return out
}

// cachesSynced is ready once the caches have seen the cluster.
func cachesSynced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return fmt.Errorf("the caches are still being filled")
		}
		return nil
	}
}

func profiling(enabled bool) map[string]http.Handler {
	if !enabled {
		return nil
	}
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
}

// Index is one field by which controllers list objects.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes are the field indexes that Karpenter's controllers rely on. A fake
// client in a test needs the same ones.
func Indexes() []Index {
	pod := func(f func(*corev1.Pod) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{f(o.(*corev1.Pod))} }
	}
	claim := func(f func(*v1.NodeClaim) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{f(o.(*v1.NodeClaim))} }
	}
	pool := func(f func(*v1.NodeClassReference) string) client.IndexerFunc {
		return func(o client.Object) []string {
			return []string{f(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)}
		}
	}
	return []Index{
		{&corev1.Pod{}, "spec.nodeName", pod(func(p *corev1.Pod) string { return p.Spec.NodeName })},
		{&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }},
		{&storagev1.VolumeAttachment{}, "spec.nodeName",
			func(o client.Object) []string { return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName} }},
		{&v1.NodeClaim{}, "status.providerID", claim(func(c *v1.NodeClaim) string { return c.Status.ProviderID })},
		{&v1.NodeClaim{}, "spec.nodeClassRef.group", claim(func(c *v1.NodeClaim) string { return c.Spec.NodeClassRef.Group })},
		{&v1.NodeClaim{}, "spec.nodeClassRef.kind", claim(func(c *v1.NodeClaim) string { return c.Spec.NodeClassRef.Kind })},
		{&v1.NodeClaim{}, "spec.nodeClassRef.name", claim(func(c *v1.NodeClaim) string { return c.Spec.NodeClassRef.Name })},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.group", pool(func(r *v1.NodeClassReference) string { return r.Group })},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.kind", pool(func(r *v1.NodeClassReference) string { return r.Kind })},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.name", pool(func(r *v1.NodeClassReference) string { return r.Name })},
	}
}

func indexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, ix := range Indexes() {
		if err := indexer.IndexField(ctx, ix.Object, ix.Field, ix.Extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", ix.Object, ix.Field, err)
		}
	}
	return nil
}
