package unavailable

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestMarshalledEntriesAreReadBackAsWritten(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b := New(c.now)
	b.MarkUnavailable(NewFailure("ZonalAllocationFailed", "", nil), Attempt{size("Standard_D4s_v5", 4), "eastus-1", model.Spot})
	b.MarkUnavailable(NewFailure("OperationNotAllowed", "LowPriorityCores", nil), Attempt{size("Standard_D4s_v5", 4), "0", model.Spot})
	text, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Minute)
	successor := New(c.now)
	if err := successor.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	if got, want := successor.Entries(), b.Entries(); !reflect.DeepEqual(got, want) {
		t.Errorf("read back %v\nwritten %v", got, want)
	}
	c.at = c.at.Add(time.Hour)
	late := New(c.now)
	if err := late.Unmarshal(text); err != nil || len(late.Entries()) != 0 {
		t.Errorf("after the end of all entries: %v, %v", late.Entries(), err)
	}
}

func TestUnmarshalOfOtherTextChangesNothing(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	for _, text := range []string{
		``, `{}`, `[{"size": "a", "place": "eastus-1", "capacityType": "spot", "unitl": "2026-01-02T00:00:00Z"}]`,
		`[{"place": "anywhere", "capacityType": "spot", "until": "2026-01-02T00:00:00Z"}, {"size": "a", "capacityType": "spot"}]`,
		`[{"size": "a", "place": "zonal", "capacityType": "reserved"}]`,
		`[{"size": "a", "family": "b", "place": "zonal", "capacityType": "spot"}]`,
		`[{"kind": "amd64", "family": "b", "place": "zonal", "capacityType": "spot", "until": "2026-01-02T00:00:00Z"}]`,
		`[{"kind": "amd64", "place": "zonal", "capacityType": "on-demand", "until": "2026-01-02T00:00:00Z"}]`,
		`[{"family": "b", "place": "zonal", "capacityType": "spot", "minVCPUs": -1, "until": "2026-01-02T00:00:00Z"}]`,
	} {
		b := New(c.now)
		if err := b.Unmarshal([]byte(text)); err == nil || len(b.Entries()) != 0 {
			t.Errorf("%q: %v, blocks %v; want it refused", text, err, b.Entries())
		}
	}
}

func TestUnmarshalBoundsEntriesWrittenByAWrongClock(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	b := New(c.now)
	if err := b.Unmarshal(
		[]byte(`[{"size": "a", "place": "zonal", "capacityType": "spot", "until": "2036-01-02T00:00:00Z", "why": "x"}]`)); err != nil {
		t.Fatal(err)
	}
	if until := b.Entries()[0].Until; until.Sub(c.at) != soldOutTTL {
		t.Errorf("blocked until %s, want for 23 hours", until)
	}
}

func TestMarshalWritesABoundedNumberOfEntries(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	for i := range 5000 {
		b.MarkUnavailable(NewFailure("OverconstrainedZonalAllocationRequest", "", nil),
			Attempt{size(fmt.Sprintf("Standard_NC%dads_A100_v4", i), 4), "southeastasia-1", model.OnDemand})
	}
	text, err := b.Marshal()
	if err != nil || len(text) > 300_000 || strings.Count(string(text), "\n ") != mostRemembered {
		t.Errorf("%d bytes for %d blocks, %v", len(text), strings.Count(string(text), "\n "), err)
	}
	if err := New(c.now).Unmarshal(text); err != nil {
		t.Error(err)
	}
}
