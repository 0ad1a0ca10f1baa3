package controller

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Start is what a cloud gets from the controller that is being started.
type Start struct {
	// MayWrite is asked right before each request that changes something in the cloud, which
	// is not sent when it returns an error: another controller may lead by now.
	MayWrite func() error
	// Ask asks the cloud by a function, and again while passes says of its error that it
	// passes by itself, with growing pauses, until it does or the context ends. A person
	// who waits for the answer gets it at once.
	Ask func(ctx context.Context, passes func(error) bool, by func(context.Context) error) error
}

const (
	// A cloud that does not answer is asked again after a pause that doubles from the first
	// to the longest.
	firstCloudPause, longestCloudPause = 5 * time.Second, time.Minute
	// cloudWithin ends an attempt at a cloud that keeps connections open and says nothing.
	cloudWithin = 2 * time.Minute
)

// cloudWait waits for a cloud that is out when a controller starts. Meanwhile it is healthy and
// not ready: a restart would not help, and a pod that ends is started again ever more
// slowly.
type cloudWait struct {
	log   logr.Logger
	clock clock.Clock
	// patient is false where a person waits for the answer.
	patient bool
}

// connect connects to the cloud. It answers health probes until it returns: only then does the
// manager have their address.
func connect(ctx context.Context, cfg Config, logger logr.Logger, mayWrite func() error) (NewCloud, error) {
	w := &cloudWait{log: logger, clock: cfg.Clock, patient: cfg.Patience > 0}
	if address := cfg.Options.HealthProbeBindAddress; w.patient && address != "" && address != "0" {
		stop, err := serveHealth(ctx, address)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	return cfg.Connect(ctx, Start{MayWrite: mayWrite, Ask: w.ask})
}

func (w *cloudWait) ask(ctx context.Context, passes func(error) bool, by func(context.Context) error) error {
	if !w.patient {
		return by(ctx)
	}
	for pause := firstCloudPause; ; pause = min(2*pause, longestCloudPause) {
		err := w.once(ctx, by)
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		w.log.Info("Azure does not answer; nap is not ready, and asks again", "after", pause.String(), "because", err.Error())
		select {
		case <-ctx.Done():
			return err
		case <-w.clock.After(pause):
		}
	}
}

func (w *cloudWait) once(ctx context.Context, by func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cloudWithin)
	defer cancel()
	return by(ctx)
}

// serveHealth answers probes as healthy and not ready until it is stopped.
func serveHealth(ctx context.Context, address string) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends when it is closed
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
