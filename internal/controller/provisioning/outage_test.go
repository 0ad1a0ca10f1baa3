package provisioning

import (
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// Azure fails before, during and after the call that launches a machine. While the machine is on
// its way, the event of its pod, the snapshot and the words of the commands say what Azure said and
// when it is given up, and no event says that the pod has no place. Then it is given up.
func TestMachineOnItsWayInOutageSaysWhatAzureSaid(t *testing.T) {
	const vm = "Microsoft.Compute/virtualMachines/write"
	for name, row := range map[string]struct {
		fault armsim.Fault
		// said is how the trouble begins, empty where Azure says nothing.
		said, stage string
		within      time.Duration
	}{
		"down":              {armsim.Fault{Kind: armsim.FaultOutage}, "AzureUnavailable: Azure does not answer: ", "Ordered", 5 * time.Minute},
		"connections close": {armsim.Fault{Kind: armsim.FaultOutage, Code: "abort"}, "AzureUnavailable: Azure does not answer: ", "Ordered", 5 * time.Minute},
		"launches fail":     {armsim.Fault{Kind: armsim.FaultError, Operation: vm}, "AzureUnavailable: Azure does not answer: ", "Ordered", 5 * time.Minute},
		"launches are refused": {armsim.Fault{Kind: armsim.FaultError, Operation: vm, Status: 400, Code: "SubnetIsFull"},
			"SubnetFull: ", "Ordered", 5 * time.Minute},
		"launches hang": {armsim.Fault{Kind: armsim.FaultHang}, "", "Launched", 15 * time.Minute},
		"no boot":       {armsim.Fault{Kind: armsim.FaultNoBoot}, "", "Launched", 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inMarket(t, market{[]string{"Standard_D4s_v5"}, []string{"on-demand"}}, waitingPods(1, "1"), func(t *testing.T, w *azureWorld) {
				w.fault(row.fault)
				w.play(3*time.Minute, retryAfter)
				claims := w.claims()
				if len(claims) != 1 {
					t.Fatalf("%d NodeClaims, want one on its way", len(claims))
				}
				status := &v1alpha1.SnapshotStatus{}
				status.Machines, status.UsualBootSeconds = snapshot.Machines(w.mirror.Snapshot(), time.Now())
				if len(status.Machines) != 1 {
					t.Fatalf("the snapshot has %d machines", len(status.Machines))
				}
				m := &status.Machines[0]
				until := claims[0].CreationTimestamp.Add(row.within)
				if m.Stage != row.stage || !strings.HasPrefix(m.Trouble, row.said) || (m.Trouble == "") != (row.said == "") ||
					m.GivenUp == nil || !m.GivenUp.Time.Equal(until) {
					t.Errorf("the snapshot says %+v, given up at %v, want %s", m, m.GivenUp, until)
				}
				words := snapshot.OnItsWay(status, m.NodeClaim, time.Now())
				for _, part := range []string{"ordered 2m", row.stage, "given up at " + until.UTC().Format("15:04:05Z"), m.Trouble} {
					if !strings.Contains(words, part) {
						t.Errorf("commands say %q without %q", words, part)
					}
				}
				if got := w.recorder.of("FailedScheduling"); len(got) != 0 {
					t.Errorf("events say that the pod has no place: %q", got)
				}
				told := w.recorder.of(event.ReasonWaitingForMachine)
				switch {
				case row.said == "" && len(told) != 0:
					t.Errorf("nothing is known, and events say %q", told)
				case row.said != "" && (len(told) == 0 || !strings.Contains(told[0], "Its machine is not there yet: "+row.said[:len(row.said)-2]) ||
					!strings.HasSuffix(told[0], "(NodeClaim "+m.NodeClaim+")")):
					t.Errorf("the events are %q, want one with %q", told, row.said)
				}
				w.play(row.within-2*time.Minute, retryAfter)
				for _, c := range w.claims() {
					if c.Name == m.NodeClaim && c.DeletionTimestamp.IsZero() {
						t.Errorf("%s is still on its way", time.Since(c.CreationTimestamp.Time))
					}
				}
			})
		})
	}
}
