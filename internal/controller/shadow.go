package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// leastShadowInterval is the shortest pause between two samples of a shadow.
const leastShadowInterval = time.Second

// ShadowConfig is what RunShadow needs.
type ShadowConfig struct {
	shadowkeeper.Settings
	// REST reaches the API server.
	REST *rest.Config
	// HealthProbeBindAddress is host:port of the health endpoint, "0" for none.
	HealthProbeBindAddress string
	Logger                 logr.Logger
	Clock                  clock.Clock
}

// RunShadow watches a cluster that another autoscaler rules until the context ends, and
// writes down what nap would have cost. It writes its ShadowReport and nothing else, holds
// no lease and asks Azure nothing.
func RunShadow(ctx context.Context, cfg ShadowConfig) error {
	if cfg.Every < leastShadowInterval {
		return fmt.Errorf("--shadow-interval %s: must be at least %s", cfg.Every, leastShadowInterval)
	}
	ctrllog.SetLogger(cfg.Logger)
	switch err := kube.MayListCluster(ctx, cfg.REST); {
	case errors.Is(err, kube.ErrMayNotList):
		return fmt.Errorf("%w; charts/nap with shadow.enabled=true grants all that a shadow reads", err)
	case err != nil:
		return fmt.Errorf("%w: check that the API server runs, or choose another with --kubeconfig or --context", err)
	}
	known, err := kube.ClusterScheme()
	if err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(known); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg.REST, ctrl.Options{
		Scheme: known, Logger: cfg.Logger, HealthProbeBindAddress: cfg.HealthProbeBindAddress,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: kube.Trim},
	})
	if err != nil {
		return fmt.Errorf("building the controller manager: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, shadowkeeper.NodeNameIndex, shadowkeeper.NodeNameOf); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	// The report is read and written past the cache, which would watch it.
	direct, err := client.New(cfg.REST, client.Options{Scheme: known})
	if err != nil {
		return fmt.Errorf("connecting to the API server %s: %w", cfg.REST.Host, err)
	}
	keeper := &shadowkeeper.Keeper{Cluster: mgr.GetCache(), Reader: direct, Writer: direct, Clock: cfg.Clock, Settings: cfg.Settings}
	err = errors.Join(mgr.Add(keeper), mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return fmt.Errorf("adding the keeper of the shadow's report: %w", err)
	}
	cfg.Logger.Info("watching as a shadow", "server", cfg.REST.Host, "every", cfg.Every.String())
	if err := mgr.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the shadow stopped: %w", err)
	}
	cfg.Logger.Info("stopped")
	return nil
}
