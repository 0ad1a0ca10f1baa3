package cloudprovider

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// Machines are updated when tags or identities change, and not for their order.
func TestInPlaceHashIsOfTagsAndIdentities(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		class := &v1beta1.AKSNodeClass{}
		seen := map[string]string{}
		for _, c := range []struct {
			what             string
			tags, additional map[string]string
			identities       []string
		}{
			{"nothing", nil, nil, nil},
			{"a tag", map[string]string{"a": "1"}, nil, nil},
			{"another value", map[string]string{"a": "2"}, nil, nil},
			{"the tag of all machines", nil, map[string]string{"a": "1"}, nil},
			{"an identity", nil, nil, []string{"/x"}},
			{"two identities", nil, nil, []string{"/x", "/y"}},
		} {
			w.restart(t, func(config *config.Config) { config.AdditionalTags, config.NodeIdentities = c.additional, c.identities })
			class.Spec.Tags = c.tags
			hash := w.port.InPlace.InPlaceHash(class)
			if other, is := seen[hash]; is {
				t.Errorf("%s and %s have one hash", c.what, other)
			}
			seen[hash] = c.what
		}
		w.restart(t, func(config *config.Config) { config.NodeIdentities = []string{"/y", "/x"} })
		class.Spec.Tags = nil
		if seen[w.port.InPlace.InPlaceHash(class)] != "two identities" {
			t.Error("the order of identities changes the hash")
		}
		if err := w.port.InPlace.Update(t.Context(), "general-gone", w.class); err != nil {
			t.Errorf("a machine that is gone: %v", err)
		}
	})
}

// Karpenter waits for machines that go: their claims say that they do. Who is to be told of
// the end is told.
func TestMachineThatGoesIsListedAsGoing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gone := ""
		w.port.WatchGone(func(claim string, _ time.Time) { gone = claim })
		if c := w.port.claimOf(launch.Machine{Claim: "a", State: launch.Succeeded}); c.DeletionTimestamp != nil {
			t.Error("a machine that runs is said to go")
		}
		if c := w.port.claimOf(launch.Machine{Claim: "a", State: launch.Deleting}); c.DeletionTimestamp.IsZero() {
			t.Error("a machine that goes is not said to")
		}
		w.port.leaving.asked("a", nil)
		if w.port.leaving.asked("a", launch.ErrNotFound); gone != "a" {
			t.Errorf("told of %q, want a", gone)
		}
	})
}
