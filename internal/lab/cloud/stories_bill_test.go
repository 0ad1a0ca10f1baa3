//go:build scale

package cloud_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/ledgerkeeper"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/ledger"
)

// TestBillEqualsLedger lets machines come and go for ten minutes, and holds the ledger
// against what the simulated Azure has billed by its own audit log and price lists.
func TestBillEqualsLedger(t *testing.T) {
	story, err := scenario.Story("bill")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs})
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer azure.Close()
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(l.Config(), client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Minute; {
		var told strings.Builder
		err := cloud.Play(t.Context(), l.Env.Dir, story, &told)
		t.Log(told.String())
		if err != nil {
			t.Fatal(err)
		}
	}
	billed, err := azure.Billed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Nothing runs any more: what the bill is does not change, and the ledger is written
	// within a minute.
	closed := func(r *ledger.Report) bool { return r.HourlyCost.Total() == 0 && len(r.Purchases) > 0 }
	var report *ledger.Report
	for range 120 {
		books, err := ledgerkeeper.Read(t.Context(), kube)
		if err != nil {
			t.Fatal(err)
		}
		if report = ledger.Sum(books, time.Now().AddDate(0, 0, -1)); closed(report) {
			break
		}
		time.Sleep(time.Second)
	}
	if !closed(report) {
		t.Fatalf("the ledger still counts machines: %+v", report.HourlyCost)
	}
	t.Logf("%d machines: Azure billed $%.5f, the ledger has $%.5f: %+.2f %%; %d moves", len(report.Purchases), billed, report.Cost.Total(),
		100*(report.Cost.Total()/billed-1), len(report.Moves))
	if math.Abs(report.Cost.Total()/billed-1) > 0.01 {
		t.Errorf("the ledger has $%.5f, Azure billed $%.5f", report.Cost.Total(), billed)
	}
}
