package providertest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

func TestAKSMachineWithoutTagsIsFoundAgain(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		const long = "a-node-pool-with-quite-a-long-name-abc12"
		short, err := launch.MachineName(long)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range []string{"general-abc12", "general-xyz34", long} {
			if _, err := w.provider.Launch(t.Context(), w.pooled(claim)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		w.retag(t, "general-abc12", map[string]string{"cost-center": "4711"})
		w.retag(t, "general-xyz34", map[string]string{})
		w.retag(t, short, map[string]string{launch.TagCluster: w.ClusterName})
		if got := w.claimsListed(t); got != "" {
			t.Fatalf("without their tags %s are listed", got)
		}
		// Those that have a NodeClaim are healed at once; the other may be young.
		if removed, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12", long)); err != nil || len(removed) != 0 {
			t.Fatalf("removed %v, %v", removed, err)
		}
		if got := w.claimsListed(t); got != long+" general-abc12" {
			t.Errorf("listed are %q, want the claimed ones healed", got)
		}
		if m, err := w.provider.Get(t.Context(), "general-abc12"); err != nil || m.Pool != "general" || m.Tags["cost-center"] != "4711" {
			t.Errorf("healed is %+v, %v", m, err)
		}
		time.Sleep(61 * time.Minute)
		var removed []string
		for range 2 { // found, then collected
			got, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12", long))
			if err != nil {
				t.Fatal(err)
			}
			removed = append(removed, got...)
		}
		if !slices.Equal(removed, []string{"general-xyz34"}) {
			t.Errorf("removed %v, want the one that nobody claims", removed)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAKSMachineOfUncertainOwnerIsNotAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartAs(t, config.ModeAKSMachines)
		for claim, tags := range map[string]map[string]string{
			"general-abc12": {launch.TagCluster: "another"}, // of another cluster, as it says
			"jumpbox":       {},                             // a name that no claim has
		} {
			if _, err := w.provider.Launch(t.Context(), w.pooled(claim)); err != nil {
				t.Fatal(err)
			}
			w.retag(t, claim, tags)
		}
		// Made by hand: named like ours, and bare of what nap writes.
		w.machine(t, http.MethodPut, "general-hand1",
			`{"properties": {"hardware": {"vmSize": "Standard_D4s_v5"}, "kubernetes": {"nodeLabels": {"team": "web"}}}}`)
		time.Sleep(24 * time.Hour)
		for range 3 {
			if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
				t.Errorf("removed %v, %v, want none", removed, err)
			}
		}
		if got := w.claimsListed(t); got != "" {
			t.Errorf("adopted %s, want none", got)
		}
	})
}

func TestAKSSpotInterruptionLeavesNoResources(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		first, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), spot()))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if m, err := w.provider.Get(t.Context(), "general-abc12"); err != nil || m.CapacityType != "spot" || m.State != launch.Succeeded {
			t.Fatalf("bought %+v, %v", m, err)
		}
		mend := w.breaking(t, armsim.Fault{Kind: armsim.FaultEvict})
		time.Sleep(time.Minute)
		for how, read := range map[string]func() (launch.Machine, error){
			"by claim":       func() (launch.Machine, error) { return w.provider.Get(t.Context(), "general-abc12") },
			"by provider id": func() (launch.Machine, error) { return w.provider.Find(t.Context(), first.ProviderID) },
		} {
			if m, err := read(); !errors.Is(err, launch.ErrNotFound) {
				t.Errorf("%s: %+v, %v, want ErrNotFound", how, m, err)
			}
		}
		if got := w.claimsListed(t); got != "" {
			t.Errorf("%s is still listed", got)
		}
		if err := w.provider.Delete(t.Context(), "general-abc12", ""); !errors.Is(err, launch.ErrNotFound) {
			t.Errorf("giving it back: %v, want ErrNotFound", err)
		}
		w.noLeaks(t)
		mend()
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), spot())); err != nil {
			t.Errorf("buying again: %v", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

// rival is a transport behind which another client changes a machine's tags between
// nap's reading and its writing, once.
type rival struct {
	http.RoundTripper
	once   sync.Once
	change func()
}

func (r *rival) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("If-Match") != "" {
		r.once.Do(r.change)
	}
	return r.RoundTripper.RoundTrip(req)
}

func TestAKSMachineTagUpdateReadsAgainAfterOthersWrote(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.pooled("general-abc12")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		healthy, mode := w.HTTP, w.config.ProvisionMode
		before, err := w.provider.Get(t.Context(), "general-abc12")
		if err != nil {
			t.Fatal(err)
		}
		w.HTTP = &http.Client{Transport: &rival{RoundTripper: healthy.Transport, change: func() {
			tags := maps.Clone(before.Tags)
			tags["team"] = "web"
			w.retag(t, "general-abc12", tags)
		}}}
		w.restartAs(t, mode)
		w.class.Tags = map[string]string{"cost/center": "42"}
		if err := w.provider.Update(t.Context(), "general-abc12", w.class); err != nil {
			t.Errorf("updating what has changed: %v", err)
		}
		refused := 0
		for _, e := range w.Server.Audit(0) {
			if e.Status == http.StatusPreconditionFailed {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d calls were refused for the machine's ETag, want the first alone", refused)
		}
		if m, err := w.provider.Get(t.Context(), "general-abc12"); err != nil || m.Tags["cost_center"] != "42" {
			t.Errorf("%+v, %v", m, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

// headers notes the headers of calls for machines, by method.
type headers struct {
	http.RoundTripper
	mu  sync.Mutex
	got map[string]http.Header
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/machines/") {
		h.mu.Lock()
		h.got[r.Method] = r.Header.Clone()
		h.mu.Unlock()
	}
	return h.RoundTripper.RoundTrip(r)
}

func TestAKSMachineRequestHeaders(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		seen, mode := &headers{RoundTripper: w.HTTP.Transport, got: map[string]http.Header{}}, w.config.ProvisionMode
		w.HTTP = &http.Client{Transport: seen}
		w.restartAs(t, mode)
		if _, err := w.provider.Launch(t.Context(), w.pooled("general-abc12")); err != nil {
			t.Fatal(err)
		}
		put := seen.got[http.MethodPut]
		w.class.Tags = map[string]string{"team": "web"}
		if err := w.provider.Update(t.Context(), "general-abc12", w.class); err != nil {
			t.Fatal(err)
		}
		change := seen.got[http.MethodPut]
		batched := mode == config.ModeAKSMachinesBatched
		if put.Get("AllowSpotVMSystemNode") != "true" ||
			(put.Get("BatchPutMachine") != "") != batched || (put.Get("If-None-Match") == "*") == batched {
			t.Errorf("PUT has headers %v", put)
		}
		if change.Get("AllowSpotVMSystemNode") != "true" || change.Get("If-Match") == "" || change.Get("If-None-Match") != "" || change.Get("BatchPutMachine") != "" {
			t.Errorf("the PUT of a change has headers %v", change)
		}
		if seen.got[http.MethodPatch] != nil {
			t.Error("a machine was patched")
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// vanishing is a transport behind which machines are gone by the time that they are
// to be deleted.
type vanishing struct {
	http.RoundTripper
	status int
	body   string
}

func (v vanishing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(strings.ToLower(r.URL.Path), "/deletemachines") {
		return answerWith(r, v.status, v.body), nil
	}
	return v.RoundTripper.RoundTrip(r)
}

func TestAKSMachineDeleteWhenAlreadyGone(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string // in the error; empty for none
	}{
		"no such pool": {http.StatusNotFound, `{"error": {"code": "NotFound", "message": "Could not find agent pool."}}`, ""},
		"no such machines": {http.StatusBadRequest,
			`{"error": {"code": "InvalidParameter", "message": "Cannot find any valid machines to delete."}}`, ""},
		"another refusal": {http.StatusConflict,
			`{"error": {"code": "OperationNotAllowed", "message": "The cluster is being upgraded."}}`, "being upgraded"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.HTTP = &http.Client{Transport: vanishing{w.HTTP.Transport, c.status, c.body}}
				w.restartAs(t, config.ModeAKSMachines)
				if _, err := w.provider.Launch(t.Context(), w.pooled("general-abc12")); err != nil {
					t.Fatal(err)
				}
				err := w.provider.Delete(t.Context(), "general-abc12", "")
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("deleting: %v, want %q", err, c.want)
				}
			})
		})
	}
}

// updateFailed shows every AKS machine that AKS has made as one whose later update failed.
func updateFailed(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		a, err := next.RoundTrip(r)
		if err != nil || a.StatusCode != http.StatusOK || r.Method != http.MethodGet ||
			!strings.Contains(strings.ToLower(r.URL.Path), "/machines") {
			return a, err
		}
		var answer map[string]any
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			return nil, err
		}
		machines, isList := answer["value"].([]any)
		if !isList {
			machines = []any{answer}
		}
		for _, m := range machines {
			machine, _ := m.(map[string]any)
			p, _ := machine["properties"].(map[string]any)
			if status, _ := p["status"].(map[string]any); status != nil && p["provisioningState"] == "Succeeded" {
				p["provisioningState"] = "Failed"
				status["provisioningError"] = map[string]any{"code": "OperationPreempted", "message": "The update of the tags was preempted."}
			}
		}
		body, err := json.Marshal(answer)
		return answerWith(r, http.StatusOK, string(body)), err
	})
}

// A machine whose update failed works as before: a process that starts finds it as it is.
func TestAKSMachineWhoseUpdateFailedIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartAs(t, config.ModeAKSMachines)
		order := w.pooled("general-abc12")
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		w.through(t, updateFailed)
		time.Sleep(5 * time.Minute)
		if kind := w.reported("general-abc12"); kind != "" || w.claimsListed(t) != "general-abc12" {
			t.Errorf("reported %q, machines %q; want none reported and the machine kept", kind, w.claimsListed(t))
		}
		if m, err := w.provider.Launch(t.Context(), order); err != nil || m.State != launch.Failed {
			t.Errorf("asked for once more: %+v, %v; want the machine as it is", m, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}
