package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Client administers the simulated Azure of a lab from any process. It
// implements scenario.Azure.
type Client struct {
	access access
	http   *http.Client
	prices *skutable.Table
	disks  *price.DiskTable
}

// Open finds the simulated Azure of the lab in dir.
func Open(dir string) (*Client, error) {
	text, err := os.ReadFile(filepath.Join(dir, "azure.json"))
	if err != nil {
		return nil, fmt.Errorf("no simulated Azure in %s; start a lab with: nap lab up", dir)
	}
	c := &Client{}
	if err := json.Unmarshal(text, &c.access); err != nil {
		return nil, fmt.Errorf("read %s: %w; restart the lab", filepath.Join(dir, "azure.json"), err)
	}
	ca, err := os.ReadFile(c.access.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the lab's certificate: %w; restart the lab", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	c.http = &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}
	if c.prices, err = skutable.Load(); err != nil {
		return nil, err
	}
	c.disks, err = price.LoadDisks()
	return c, err
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do calls the administration API; a nil body is a request without one.
func (c *Client) do(ctx context.Context, method, route string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.access.Endpoint+"/admin/"+route, payload)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.access.AdminToken)
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the simulated Azure: %w; is the lab running?", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		var failure struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&failure); err != nil {
			return fmt.Errorf("the simulated Azure answers %s", resp.Status)
		}
		return fmt.Errorf("the simulated Azure refuses: %s", failure.Error)
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// Faults lists the faults in force.
func (c *Client) Faults(ctx context.Context) ([]armsim.Fault, error) {
	var faults []armsim.Fault
	return faults, c.do(ctx, http.MethodGet, "faults", nil, &faults)
}

// Add adds a fault and returns it with its ID.
func (c *Client) Add(ctx context.Context, f armsim.Fault) (armsim.Fault, error) {
	var added armsim.Fault
	return added, c.do(ctx, http.MethodPost, "faults", f, &added)
}

// Remove removes one fault.
func (c *Client) Remove(ctx context.Context, id string) error {
	var nothing struct{}
	return c.do(ctx, http.MethodDelete, "faults/"+id, nil, &nothing)
}

// ClearFaults implements scenario.Azure.
func (c *Client) ClearFaults(ctx context.Context) error {
	var removed []armsim.Fault
	return c.do(ctx, http.MethodDelete, "faults", nil, &removed)
}

// AddFault implements scenario.Azure: the parameters are the fields of a fault
// as JSON names them.
func (c *Client) AddFault(ctx context.Context, kind string, params map[string]string) (string, error) {
	fields := map[string]any{"kind": kind}
	for key, value := range params {
		var number json.Number
		if err := json.Unmarshal([]byte(value), &number); err == nil && key != "zone" && key != "code" {
			fields[key] = number
		} else {
			fields[key] = value
		}
	}
	var added armsim.Fault
	err := c.do(ctx, http.MethodPost, "faults", fields, &added)
	return added.ID, err
}

// Machines implements scenario.Azure.
func (c *Client) Machines(ctx context.Context) ([]scenario.Machine, error) {
	var all []armsim.Machine
	if err := c.do(ctx, http.MethodGet, "machines", nil, &all); err != nil {
		return nil, err
	}
	var bought []scenario.Machine
	for _, m := range all {
		if !m.Fixed {
			bought = append(bought, c.machine(m))
		}
	}
	return bought, nil
}

func (c *Client) machine(of armsim.Machine) scenario.Machine {
	m := scenario.Machine{
		Name: of.Name, Size: of.Size, Zone: of.Zone, Priority: strings.ToLower(cmp.Or(of.Priority, "Regular")),
	}
	if end := of.Provisioned; end != nil && end.ExitCode != 0 {
		m.Trouble = end.Stdout
	}
	machine := c.prices.Price
	if m.Priority == "spot" {
		machine = c.prices.SpotPrice
	}
	m.DollarsPerHour, _ = machine(m.Size, c.access.Region)
	if size, known := c.prices.Size(m.Size); known && !of.LocalOSDisk {
		m.DollarsPerHour += c.disks.In(c.access.Region).OSDisk(int64(of.OSDiskGB), size.PremiumStorage).Dollars()
	}
	return m
}

// Stats are counters since the lab began, such as "calls <action>".
func (c *Client) Stats(ctx context.Context) (map[string]int64, error) {
	var counters map[string]int64
	return counters, c.do(ctx, http.MethodGet, "stats", nil, &counters)
}

// Audit is everything that was changed in Azure since the lab began, oldest first.
func (c *Client) Audit(ctx context.Context) ([]armsim.AuditEntry, error) {
	var audit []armsim.AuditEntry
	return audit, c.do(ctx, http.MethodGet, "audit", nil, &audit)
}

// Purchases implements scenario.Azure: every machine whose creation succeeded.
func (c *Client) Purchases(ctx context.Context) ([]scenario.Purchase, error) {
	audit, err := c.Audit(ctx)
	if err != nil {
		return nil, err
	}
	var bought []scenario.Purchase
	latest := map[string]int{}
	for _, e := range audit {
		id := strings.ToLower(e.Resource)
		switch e.Action {
		case "vm.succeeded":
			latest[id] = len(bought)
			bought = append(bought, scenario.Purchase{Machine: scenario.Machine{Name: path.Base(id)}})
		case "vm.deleted", "vm.evicted":
			if i, ok := latest[id]; ok {
				bought[i].Returned = true
			}
		}
	}
	return bought, nil
}

// FailedBoots implements scenario.Azure: operations that ended because provisioning
// had failed. That of an AKS machine is the one of its virtual machine.
func (c *Client) FailedBoots(ctx context.Context) ([]scenario.FailedBoot, error) {
	audit, err := c.Audit(ctx)
	if err != nil {
		return nil, err
	}
	var failed []scenario.FailedBoot
	for _, e := range audit {
		if e.Kind != armsim.AuditOperation || e.Code != "VMExtensionProvisioningError" {
			continue
		}
		machine, _, _ := strings.Cut(strings.ToLower(e.Resource), "/extensions/")
		failed = append(failed, scenario.FailedBoot{Claim: launch.Stem(machinesPool, path.Base(machine)), Reported: e.Time})
	}
	return failed, nil
}

// left is everything that exists because the controller made it.
func (c *Client) left(ctx context.Context) (armsim.Inventory, error) {
	var inventory armsim.Inventory
	return inventory, c.do(ctx, http.MethodGet, "leaks", nil, &inventory)
}

// Accepted implements scenario.Azure.
func (c *Client) Accepted(ctx context.Context) (int, error) {
	inventory, err := c.left(ctx)
	return len(inventory.VMs), err
}

// Leaks implements scenario.Azure.
func (c *Client) Leaks(ctx context.Context, claims []string) ([]string, error) {
	inventory, err := c.left(ctx)
	if err != nil {
		return nil, err
	}
	claimed := map[string]bool{}
	for _, claim := range claims {
		claimed[claim] = true
		if machine, err := launch.MachineName(claim); err == nil {
			claimed[machine] = true
		}
	}
	var leaks []string
	for _, id := range append(inventory.VMs, inventory.Machines...) {
		if name := path.Base(id); !claimed[launch.Stem(machinesPool, name)] {
			leaks = append(leaks, name)
		}
	}
	for _, id := range append(inventory.OrphanNICs, inventory.OrphanDisks...) {
		leaks = append(leaks, path.Base(id))
	}
	return leaks, nil
}
