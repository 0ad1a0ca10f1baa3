package systemnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probeTimeout bounds what has no time limit of its own.
const probeTimeout = 5 * time.Second

// ask makes one request of a probe. Probes that are no request over HTTP succeed: nothing
// that runs here has such.
func (c *container) ask(ctx context.Context, p *corev1.Probe) error {
	if p == nil || p.HTTPGet == nil {
		return nil
	}
	number, err := c.port(p.HTTPGet.Port.String())
	if err != nil {
		return err
	}
	port, open := c.ports[number]
	if !open {
		return fmt.Errorf("container %s does not declare port %d", c.spec.Name, number)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	scheme := strings.ToLower(string(p.HTTPGet.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+local(port)+p.HTTPGet.Path, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // as kubelets probe
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", resp.StatusCode)
	}
	return nil
}

// ready is how the lab asks whether the process is ready: by the startup probe until it
// has succeeded, then by the readiness probe. Once it is ready it takes as many failures
// as the probe states to be unready. The lab asks more often than probes state, so that
// starting takes no longer than it must.
func (c *container) ready() func(context.Context) error {
	failures, was := int32(0), false
	return func(ctx context.Context) error {
		c.mu.Lock()
		alive := c.alive
		c.mu.Unlock()
		if !alive {
			was = false
			if err := c.ask(ctx, c.spec.StartupProbe); err != nil {
				return err
			}
			c.mu.Lock()
			c.alive = true
			c.mu.Unlock()
		}
		err := c.ask(ctx, c.spec.ReadinessProbe)
		switch {
		case err == nil:
			failures, was = 0, true
		case was && failures+1 < c.spec.ReadinessProbe.FailureThreshold:
			failures++
			return nil
		default:
			was = false
		}
		return err
	}
}

// keepAlive asks the startup probe and then the liveness probe, as they state, and has
// the process started again when one has failed too often.
func (c *container) keepAlive(ctx context.Context) {
	const idle = time.Second
	failures := int32(0)
	began := time.Now()
	for pause := idle; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		state := c.now()
		c.mu.Lock()
		alive := c.alive
		c.mu.Unlock()
		probe := c.spec.StartupProbe
		if alive {
			probe = c.spec.LivenessProbe
		}
		if state.Process.PID == 0 || probe == nil {
			failures, pause = 0, idle
			continue
		}
		if state.StartedAt.After(began) {
			began, failures = state.StartedAt, 0
		}
		pause = time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
		err := c.ask(ctx, probe)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		if failures < max(probe.FailureThreshold, 1) || ctx.Err() != nil {
			continue
		}
		c.worker.pods.env.Log.Warn("a container is started again, since its probe failed",
			"pod", c.worker.key.String(), "container", c.spec.Name, "error", err)
		failures = 0
		if err := c.running.Restart(ctx); err != nil && !errors.Is(err, context.Canceled) {
			c.worker.pods.env.Log.Warn("a container was not started again", "pod", c.worker.key.String(), "error", err)
		}
	}
}
