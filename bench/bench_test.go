package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/bench/workload"
)

func TestRunComparesBothEnginesOnSamePods(t *testing.T) {
	chosen, err := workload.Select("^W6/DEF64$")
	if err != nil {
		t.Fatal(err)
	}
	row, err := Run(t.Context(), &chosen[0], Settings{Budget: 20 * time.Millisecond, Repeat: 1, UpstreamTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if row.Nap.Unschedulable != 0 || row.Karpenter.Unschedulable != 0 {
		t.Errorf("pending: nap %d, Karpenter %d; every pod of W6 fits", row.Nap.Unschedulable, row.Karpenter.Unschedulable)
	}
	if row.Nap.Bound <= 0 || row.Nap.Cost < row.Nap.Bound || row.Nap.Cost > row.Karpenter.Cost {
		t.Errorf("bound %.2f, nap %.2f, Karpenter %.2f: must rise in this order", row.Nap.Bound, row.Nap.Cost, row.Karpenter.Cost)
	}
	// Karpenter's plan for this file is known: it is what nap is measured by.
	if row.Karpenter.Nodes != 7 || row.Karpenter.Cost < 18.62 || row.Karpenter.Cost > 18.64 {
		t.Errorf("Karpenter buys %d nodes for $%.2f/h, known are 7 for $18.63", row.Karpenter.Nodes, row.Karpenter.Cost)
	}
	if row.Nap.Allocs == 0 || row.Nap.Peak == 0 || row.Nap.First > row.Nap.Final {
		t.Errorf("figures make no sense: %+v", row.Nap)
	}
}

func TestRunReportsKarpenterTimeout(t *testing.T) {
	chosen, err := workload.Select("^W2/DEF64$")
	if err != nil {
		t.Fatal(err)
	}
	row, err := Run(t.Context(), &chosen[0], Settings{Repeat: 1, UpstreamTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if k := row.Karpenter; !k.TimedOut || k.Unschedulable == 0 {
		t.Errorf("stopped %v with %d pods pending", k.TimedOut, k.Unschedulable)
	}
	var b strings.Builder
	if err := WriteTable(&b, []*Row{row}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| stopped ", "| other pods ", "| > "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
}

func TestRunMeasuresDiversePodsWithKarpentersWorkerCount(t *testing.T) {
	chosen, err := workload.Select("^diverse-100/")
	if err != nil {
		t.Fatal(err)
	}
	row, err := Run(t.Context(), &chosen[0], Settings{Repeat: 1, UpstreamTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if row.Own == nil || row.Own.Unschedulable != 0 || row.Nap.Unschedulable != 0 || row.Nap.Cost > row.Own.Cost {
		t.Errorf("nap %+v, Karpenter with %d workers %+v: both must place all pods, nap at no higher cost", row.Nap, row.Workers, row.Own)
	}
	var b strings.Builder
	if err := WriteTable(&b, []*Row{row}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "| karpenter, 5 workers |") {
		t.Errorf("the table does not have a line for 5 workers:\n%s", b.String())
	}
}

func TestDocumentDescribesHostAndEveryWorkload(t *testing.T) {
	rows := []*Row{{Name: "W0/D", About: "a few pods", Pods: 3, Nap: &Figures{
		Read: time.Millisecond, First: 2 * time.Millisecond, Final: 30 * time.Millisecond, Allocs: 12_345, Peak: 3 << 20,
		Classes: 2, Nodes: 1, Cost: 1.5, Bound: 1.2,
	}, Karpenter: &Figures{Final: 3 * time.Second, Nodes: 1, Cost: 1.8}}}
	var b strings.Builder
	if err := WriteDocument(&b, "2026-01-02",
		Settings{Only: "W0", Repeat: 3, Budget: time.Second, UpstreamTimeout: time.Minute}, rows, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"on 2026-01-02", "cores", "Only the workloads that match `W0`", "topology up to 5000 pods",
		"stopped after 1m0s", "W0/D: 3 pods in 2 classes; a few pods",
		"| 2ms ", "| 30ms ", "| 12k ", "| 3.0 MiB ", "| 1.2500 ", "| 1.5000 ", "| 1500 / 100 ",
		"| 1ms     | 1ms      | 1000µs        | 1000000µs         |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the document lacks %q:\n%s", want, b.String())
		}
	}
}
