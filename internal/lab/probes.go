package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// probes ask a component of the control plane whether it is ready.
type probes map[string]func(ctx context.Context) error

func newProbes(l layout, ca *authority, ports map[string]int) (probes, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.pem) {
		return nil, fmt.Errorf("%s holds no certificate", l.pki(caCert))
	}
	// A fresh connection for each question: one that outlived the server's
	// restart would answer for the wrong process.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	path := map[string]string{
		Etcd:              "http://127.0.0.1:%d/readyz",
		APIServer:         "https://127.0.0.1:%d/readyz",
		Scheduler:         "https://127.0.0.1:%d/readyz",
		ControllerManager: "https://127.0.0.1:%d/healthz",
	}
	all := probes{}
	for component, format := range path {
		url := fmt.Sprintf(format, ports[component])
		all[component] = func(ctx context.Context) error { return get(ctx, client, url) }
	}
	return all, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 2048))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
