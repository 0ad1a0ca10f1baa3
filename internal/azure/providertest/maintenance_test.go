package providertest

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
)

func TestMaintenanceWindowReadFromCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.ResourceGroup = w.ResourceGroup
		w.start(t)
		if window, err := w.provider.MaintenanceWindow(t.Context(), maintenance.NodeImages); err != nil || window.Set() {
			t.Errorf("a cluster without a window has %v, %v", window, err)
		}
		clients, err := armcontainerservice.NewClientFactory(w.SubscriptionID, w.Credential, w.ClientOptions())
		if err != nil {
			t.Fatal(err)
		}
		set := func(window armcontainerservice.MaintenanceWindow) {
			t.Helper()
			window.DurationHours, window.StartTime, window.UTCOffset = to.Ptr[int32](4), to.Ptr("22:00"), to.Ptr("+02:00")
			window.StartDate = to.Ptr(time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC))
			if _, err := clients.NewMaintenanceConfigurationsClient().CreateOrUpdate(t.Context(),
				w.ResourceGroup, w.ClusterName, "aksManagedNodeOSUpgradeSchedule",
				armcontainerservice.MaintenanceConfiguration{Properties: &armcontainerservice.MaintenanceConfigurationProperties{MaintenanceWindow: &window}}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Minute)
		}
		// The bubble begins on Saturday, 2000-01-01, 00:00 UTC.
		for _, tt := range []struct {
			schedule armcontainerservice.Schedule
			until    string
		}{
			{armcontainerservice.Schedule{Daily: &armcontainerservice.DailySchedule{IntervalDays: to.Ptr[int32](1)}}, "2000-01-01T20:00:00Z"},
			{armcontainerservice.Schedule{Weekly: &armcontainerservice.WeeklySchedule{IntervalWeeks: to.Ptr[int32](1), DayOfWeek: to.Ptr(armcontainerservice.WeekDayMonday)}}, "2000-01-03T20:00:00Z"},
			{armcontainerservice.Schedule{AbsoluteMonthly: &armcontainerservice.AbsoluteMonthlySchedule{IntervalMonths: to.Ptr[int32](1), DayOfMonth: to.Ptr[int32](15)}}, "2000-01-15T20:00:00Z"},
			{armcontainerservice.Schedule{RelativeMonthly: &armcontainerservice.RelativeMonthlySchedule{IntervalMonths: to.Ptr[int32](1), DayOfWeek: to.Ptr(armcontainerservice.WeekDayFriday), WeekIndex: to.Ptr(armcontainerservice.TypeLast)}}, "2000-01-28T20:00:00Z"},
		} {
			set(armcontainerservice.MaintenanceWindow{Schedule: &tt.schedule})
			window, err := w.provider.MaintenanceWindow(t.Context(), maintenance.NodeImages)
			if err != nil {
				t.Fatal(err)
			}
			if other, err := w.provider.MaintenanceWindow(t.Context(), maintenance.Kubernetes); err != nil || other.Set() {
				t.Errorf("the configuration that is not there: %v, %v", other, err)
			}
			if open, until := window.Open(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)); open || until.UTC().Format(time.RFC3339) != tt.until {
				t.Errorf("%s: open %t until %s, want closed until %s", window, open, until.UTC(), tt.until)
			}
		}
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read", Status: http.StatusForbidden, Code: "AuthorizationFailed"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		const reads = "calls Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read"
		before := w.Server.Stats()[reads]
		for range 100 { // as drift does, for each NodeClaim
			if window, err := w.provider.MaintenanceWindow(t.Context(), maintenance.NodeImages); err == nil || !window.Set() {
				t.Errorf("when it cannot be read: %v, %v; want the last one and an error", window, err)
			}
		}
		if n := w.Server.Stats()[reads] - before; n != 1 {
			t.Errorf("it was asked for %v times, want once a minute", n)
		}
	})
}
