package providertest

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// The names and labels are those that dashboards for Karpenter on Azure ask for.
func TestMetricsKeepKarpentersNames(t *testing.T) {
	for mode, name := range map[string]string{
		config.ModeVMs: "karpenter_instance_vm", config.ModeAKSMachines: "karpenter_instance_aks_machine",
		config.ModeAKSMachinesBatched: "karpenter_instance_aks_machine",
	} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				registry := prometheus.NewRegistry()
				w.metrics = registry
				w.restartAs(t, mode)
				for _, f := range []armsim.Fault{
					{Kind: armsim.FaultQuota, Family: "standardDSv4Family", Limit: limit(2)},
					{Kind: armsim.FaultFail, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5", Message: "No capacity."},
				} {
					if _, err := w.Server.AddFault(f); err != nil {
						t.Fatal(err)
					}
				}
				// Refused, given up at once, and made.
				order := w.order("general-abc12", sizes("Standard_D4s_v4", "Standard_D4s_v5", "Standard_D8as_v5"), onDemand(), zones("eastus-1"))
				if _, err := w.provider.Launch(t.Context(), order); err != nil {
					t.Fatal(err)
				}
				// Given up after the launch, of a claim on its own and without a zone.
				order = w.order("single", sizes("Standard_D4s_v5"), onDemand(), zones("0"))
				order.Pool = ""
				if _, err := w.provider.Launch(t.Context(), order); err == nil {
					t.Error("a machine was made that Azure gives up")
				}
				time.Sleep(time.Minute)
				image := w.class.Images[0].ID
				quota := map[bool]string{true: "OperationNotAllowed", false: "QuotaExceeded"}[mode == config.ModeVMs]
				phase := map[bool]string{true: "sync", false: "async"}[mode == config.ModeVMs]
				row := func(metric, size, zone, pool, rest string) string {
					return name + "_create_" + metric + `{capacity_type="on-demand",` +
						strings.ReplaceAll(rest, ";", `image="`+image+`",nodepool="`+pool+`"`) +
						`,size="Standard_` + size + `",zone="` + zone + `"} 1` + "\n"
				}
				failure := func(code, phase, size, zone, pool string) string {
					return row("failure_total", size, zone, pool, `error_code="`+code+`",;,phase="`+phase+`"`)
				}
				want := "# HELP " + name + "_create_failure_total Machines that Azure refused, or gave up after it had accepted them.\n# TYPE " +
					name + "_create_failure_total counter\n" +
					failure(quota, phase, "D4s_v4", "eastus-1", "general") +
					failure("ZonalAllocationFailed", "async", "D4s_v5", "0", "") +
					failure("ZonalAllocationFailed", "async", "D4s_v5", "eastus-1", "general") +
					"# HELP " + name + "_create_start_total Machines that Azure was asked for.\n# TYPE " + name + "_create_start_total counter\n" +
					row("start_total", "D4s_v4", "eastus-1", "general", ";") + row("start_total", "D4s_v5", "0", "", ";") +
					row("start_total", "D4s_v5", "eastus-1", "general", ";") + row("start_total", "D8as_v5", "eastus-1", "general", ";")
				if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
					name+"_create_start_total", name+"_create_failure_total"); err != nil {
					t.Error(err)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			})
		})
	}
}

func TestMetricsCountLateFailureOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		registry := prometheus.NewRegistry()
		w.metrics = registry
		w.restartAs(t, config.ModeVMs)
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: "AllocationFailed", Message: "No capacity."}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.provider.Launch(t.Context(),
			w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if n := testutil.CollectAndCount(registry, "karpenter_instance_vm_create_failure_total"); n != 1 {
			t.Errorf("%d series count failures, want one", n)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetCounter().GetValue() != 1 {
					t.Errorf("%s is %v, want 1", f.GetName(), m.GetCounter().GetValue())
				}
			}
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

func TestImageSelectionErrorsAreCountedByFamily(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		registry := prometheus.NewRegistry()
		w.metrics = registry
		w.restartAs(t, config.ModeVMs)
		class := *w.class
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); err != nil {
			t.Fatal(err)
		}
		class.ImageVersion = "199001.01.0"
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); err == nil {
			t.Fatal("an image was found that there is not")
		}
		want := "# HELP karpenter_image_selection_error_count The number of errors encountered while selecting an image.\n" +
			"# TYPE karpenter_image_selection_error_count counter\n" +
			`karpenter_image_selection_error_count{family="` + class.ImageFamily + `"} 1` + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "karpenter_image_selection_error_count"); err != nil {
			t.Error(err)
		}
	})
}
