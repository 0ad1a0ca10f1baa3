package labcli

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
)

// azureOnly makes a lab's folder with nothing but a simulated Azure behind it.
func azureOnly(t *testing.T) (*armsim.Server, string) {
	t.Helper()
	azure, err := armsim.New(armsim.Config{AdminToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewTLSServer(azure.Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := azure.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	access, err := json.Marshal(map[string]string{"endpoint": srv.URL, "adminToken": "secret", "caFile": ca})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), filepath.Join(dir, "azure.json"): access,
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return azure, dir
}

func TestFaultAddListRemove(t *testing.T) {
	azure, dir := azureOnly(t)
	id, errs, code := nap.Run(t, "fault", "add", "capacity", "--dir", dir, "--size",
		"Standard_D*", "--zone", "1", "--priority", "Spot", "--rate", "0.5", "--duration", "1h")
	id = strings.TrimSpace(id)
	if code != 0 || id == "" || !strings.Contains(errs, "end it with: nap lab fault remove "+id+" --dir "+dir) {
		t.Fatalf("add: %d %q %q", code, id, errs)
	}
	want := armsim.Fault{ID: id, Kind: armsim.FaultCapacity, Size: "Standard_D*", Zone: "1", Priority: "Spot", Rate: 0.5, Duration: time.Hour}
	got := azure.Faults()[0]
	if got.Added = (time.Time{}); got != want {
		t.Errorf("in force: %+v, want %+v", got, want)
	}
	out, _, code := nap.Run(t, "fault", "list", "--dir", dir)
	if code != 0 || !strings.Contains(out, "size=Standard_D* zone=1 priority=Spot") || !strings.Contains(out, "rate=0.5") {
		t.Errorf("list: %d %s", code, out)
	}
	if _, errs, code := nap.Run(t, "fault", "remove", id, "--dir", dir); code != 0 || len(azure.Faults()) != 0 {
		t.Errorf("remove: %d %q, %d faults left", code, errs, len(azure.Faults()))
	}
	if _, errs, code := nap.Run(t, "fault", "remove", id, "--dir", dir); code != 1 || !strings.Contains(errs, "nap lab fault list") {
		t.Errorf("second remove: %d %q", code, errs)
	}
	if out, errs, code := nap.Run(t, "fault", "list", "--dir", dir); code != 0 || out != "" || !strings.Contains(errs, "no faults") {
		t.Errorf("list of none: %d %q %q", code, out, errs)
	}
}

func TestFaultClearRemovesAll(t *testing.T) {
	azure, dir := azureOnly(t)
	for _, kind := range []string{"no-boot", "evict"} {
		if _, errs, code := nap.Run(t, "fault", "add", kind, "--dir", dir); code != 0 {
			t.Fatal(errs)
		}
	}
	if _, errs, code := nap.Run(t, "fault", "clear", "--dir", dir); code != 0 || len(azure.Faults()) != 0 {
		t.Errorf("%d %q, %d faults left", code, errs, len(azure.Faults()))
	}
}

func TestFaultCommandForEveryKind(t *testing.T) {
	known := map[armsim.FaultKind]bool{}
	for _, k := range faultKinds() {
		known[k.kind] = true
	}
	for _, k := range armsim.FaultKinds() {
		if !known[k] {
			t.Errorf("nap lab fault add has no kind %s", k)
		}
	}
}

func TestFaultErrorsNameAllowedValues(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		`unknown command "fire" for "nap lab fault add"; there are: capacity, error, `: {"add", "fire"},
		"the KIND of fault is missing; there are: capacity, policy, quota, throttle":   {"add"},
		"unknown flag: --limit; see: nap lab fault add capacity --help":                {"add", "capacity", "--limit", "3"},
		"fault capacity: rate 2 is not between 0 and 1":                                {"add", "capacity", "--rate", "2"},
		`fault capacity: priority "low" is unknown; it is Regular or Spot`:             {"add", "capacity", "--priority", "low"},
		`fault capacity: zone "9" is unknown; it is 1, 2, 3, or 0 for machines`:        {"add", "capacity", "--zone", "9"},
		"fault quota: limit is missing":                                                {"add", "quota", "--family", "cores"},
		"fault slow: factor 0 is not greater than 1":                                   {"add", "slow"},
		"no simulated Azure in " + dir + "; start a lab with: nap lab up":              {"add", "outage"},
		"--output=xml: must be table or json":                                          {"list", "-o", "xml"},
		"exactly one ID is needed, got 0":                                              {"remove"},
	} {
		out, errs, code := nap.Run(t, append(append([]string{"fault"}, args...), "--dir", dir)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "nap: "+want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %q\nwant one line that begins with %q", args, code, errs, "nap: "+want)
		}
	}
}

func TestFaultTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := int64(8)
	var out strings.Builder
	if err := writeFaults(&out, []armsim.Fault{
		{ID: "f1", Kind: armsim.FaultCapacity, Size: "Standard_D*", Zone: "1", Priority: "Spot", Hits: 12, Added: now},
		{ID: "f2", Kind: armsim.FaultQuota, Family: "standardDSv5Family", Limit: &limit, Added: now.Add(-time.Minute), Duration: 5 * time.Minute},
		{ID: "f3", Kind: armsim.FaultThrottle, Rate: 0.3, RetryAfter: 10 * time.Second, Added: now},
		{ID: "f4", Kind: armsim.FaultOutage, Code: "abort", Added: now},
	}, now); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "lab-fault-list", out.String())
}
