package controller

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hurried is a clock whose pauses take no time; it notes them.
type hurried struct {
	clock.Clock
	pauses []time.Duration
}

func (h *hurried) After(d time.Duration) <-chan time.Time {
	h.pauses = append(h.pauses, d)
	now := make(chan time.Time, 1)
	now <- time.Time{}
	return now
}

// free is an address that nothing listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

var errOut = errors.New("503")

// While Azure is out a pod waits, healthy and not ready, until it answers; the address of the
// probes is the manager's then.
func TestStartWaitsForCloudThatIsOut(t *testing.T) {
	address, clk := free(t), &hurried{Clock: clock.RealClock{}}
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	asked := 0
	cfg := Config{Clock: clk, Patience: time.Minute, Connect: func(ctx context.Context, start Start) (NewCloud, error) {
		err := start.Ask(ctx, func(err error) bool { return errors.Is(err, errOut) }, func(context.Context) error {
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
				answer, err := http.Get("http://" + address + path)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != want {
					t.Errorf("%s: %s", path, answer.Status)
				}
			}
			if asked++; asked < 7 {
				return errOut
			}
			return nil
		})
		return func(client.Client) (Cloud, error) { return Cloud{}, nil }, err
	}}
	cfg.Options.HealthProbeBindAddress = address
	if made, err := connect(t.Context(), cfg, log, nil); err != nil || made == nil {
		t.Fatal(err)
	}
	const s = time.Second
	if want := []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 60 * s, 60 * s}; !slices.Equal(clk.pauses, want) {
		t.Errorf("paused %v, want %v", clk.pauses, want)
	}
	if len(lines) != 6 || !strings.Contains(lines[3], `"after"="40s"`) {
		t.Errorf("told %q", lines)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the manager could not serve health: %v", err)
	}
	l.Close()
}

// What does not pass ends the start at once, and so does any error where a person waits.
func TestStartEndsOnRefusalsOfTheCloud(t *testing.T) {
	refused := errors.New("403")
	for _, tc := range []struct {
		patience time.Duration
		err      error
	}{{time.Minute, refused}, {0, refused}, {0, errOut}} {
		asked := 0
		cfg := Config{Clock: &hurried{Clock: clock.RealClock{}}, Patience: tc.patience, Connect: func(ctx context.Context, start Start) (NewCloud, error) {
			return nil, start.Ask(ctx, func(err error) bool { return errors.Is(err, errOut) }, func(context.Context) error { asked++; return tc.err })
		}}
		if _, err := connect(t.Context(), cfg, logr.Discard(), nil); !errors.Is(err, tc.err) || asked != 1 {
			t.Errorf("patience %s: asked %d times, then %v", tc.patience, asked, err)
		}
	}
}
