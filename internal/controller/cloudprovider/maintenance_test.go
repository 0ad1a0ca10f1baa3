package cloudprovider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
)

// windowFrom makes the ConfigMap's window; empty data are none.
func windowFrom(data map[string]string) func(context.Context) (map[string]string, error) {
	return func(context.Context) (map[string]string, error) { return data, nil }
}

func between(start, end time.Time) map[string]string {
	const key = "aksManagedNodeOSUpgradeSchedule"
	return map[string]string{key + "-start": start.Format(time.RFC3339), key + "-end": end.Format(time.RFC3339)}
}

func TestTrap14MaintenanceWindowGatesImages(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begin := time.Now().Add(24 * time.Hour)
		w.port.MaintenanceMap(windowFrom(between(begin, begin.Add(4*time.Hour))))
		before := w.class.Status.Images[0].ID
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "general-abc12", Annotations: w.class.Annotations},
			Spec:       karpv1.NodeClaimSpec{NodeClassRef: ref()},
			Status:     karpv1.NodeClaimStatus{ImageID: "an older image"},
		}
		expect := func(when string, drift bool, image string) {
			t.Helper()
			w.resolve(t)
			got, err := w.port.IsDrifted(t.Context(), claim)
			if err != nil || (got == DriftImage) != drift {
				t.Errorf("%s drift is %q, %v; want drift: %t", when, got, err, drift)
			}
			if id := w.class.Status.Images[0].ID; !strings.HasSuffix(id, image) {
				t.Errorf("%s new machines run %s, want %s", when, id, image)
			}
		}
		w.Server.PublishImages("202701.01.0")
		time.Sleep(6 * time.Hour) // the images' cache is over
		expect("before the window", false, before)
		time.Sleep(19 * time.Hour)
		expect("in the window", true, "/202701.01.0")
		time.Sleep(4 * time.Hour)
		expect("after the window", false, "/202701.01.0")
	})
}

// A new Kubernetes version of the control plane waits for its own window, in which new
// machines get it and old ones are replaced for it.
func TestMaintenanceWindowGatesKubernetesVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begin := time.Now().Add(24 * time.Hour)
		const key = maintenance.Kubernetes
		w.port.MaintenanceMap(windowFrom(map[string]string{
			key + "-start": begin.Format(time.RFC3339), key + "-end": begin.Add(4 * time.Hour).Format(time.RFC3339),
		}))
		node, fresh := w.aged(t)
		node.Status.NodeInfo.KubeletVersion = "v1.35.1"
		if err := w.kube.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		expect := func(when, version string, drift karpcloud.DriftReason) {
			t.Helper()
			w.resolve(t)
			if got := or(w.class.Status.KubernetesVersion, ""); got != version {
				t.Errorf("%s new machines run %s, want %s", when, got, version)
			}
			w.wantDrift(t, when, fresh(), drift)
		}
		w.server = "v1.36.0"
		time.Sleep(time.Hour)
		expect("before the window", "1.35.1", "")
		time.Sleep(24 * time.Hour)
		expect("in the window", "1.36.0", DriftVersion)
		time.Sleep(4 * time.Hour)
		expect("after the window", "1.36.0", "")
		w.server = "v1.40.0" // for which machines of 1.36 are too old
		time.Sleep(time.Hour)
		expect("after the window, with machines that are too old", "1.40.0", "")
	})
}

func TestNewSpecGetsNewImagesOutsideMaintenanceWindow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.port.MaintenanceMap(windowFrom(between(time.Now().Add(24*time.Hour), time.Now().Add(28*time.Hour))))
		w.Server.PublishImages("202701.01.0")
		time.Sleep(6 * time.Hour)
		family := "AzureLinux"
		w.class.Spec.ImageFamily = &family
		w.class.Generation++
		if err := w.kube.Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.resolve(t)
		if id := w.class.Status.Images[0].ID; !strings.Contains(id, "AzureLinux") || !strings.HasSuffix(id, "/202701.01.0") {
			t.Errorf("after a change of the spec new machines run %s", id)
		}
	})
}

func TestTrap13UnreadableMaintenanceWindowKeepsImages(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		data := between(time.Now(), time.Now().Add(time.Hour))
		delete(data, "aksManagedNodeOSUpgradeSchedule-end")
		w.port.MaintenanceMap(windowFrom(data))
		before := w.class.Status.Images[0].ID
		w.Server.PublishImages("202701.01.0")
		time.Sleep(6 * time.Hour)
		w.resolve(t)
		if id := w.class.Status.Images[0].ID; id != before {
			t.Errorf("new machines run %s, want %s kept", id, before)
		}
		if !w.class.StatusConditions().Get(v1beta1.ConditionImagesReady).IsTrue() {
			t.Error("the class is not ready although its images are known")
		}
		if len(w.events.all()) == 0 || !strings.Contains(w.events.all()[0], "MaintenanceWindowUnknown: ") ||
			!strings.Contains(w.events.all()[0], "aksManagedNodeOSUpgradeSchedule-end is missing") {
			t.Errorf("events are %q", w.events.all())
		}
	})
}

// The ConfigMap is read once a minute, and an error of it is believed for as long.
func TestWindowMapIsReadOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, broken := 0, errors.New("no answer")
		m := &windowMap{read: func(context.Context) (map[string]string, error) {
			reads++
			return nil, broken
		}}
		for want := 1; want <= 2; want++ {
			for range 3 {
				if _, err := m.get(t.Context(), maintenance.NodeImages); !errors.Is(err, broken) || reads != want {
					t.Errorf("read %d times, want %d: %v", reads, want, err)
				}
			}
			time.Sleep(mapFor)
		}
		broken = nil
		if _, err := m.get(t.Context(), maintenance.NodeImages); err != nil || reads != 3 {
			t.Errorf("read %d times, want 3: %v", reads, err)
		}
	})
}
