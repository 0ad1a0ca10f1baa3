package providertest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// A machine that never starts its operating system says why on its console alone.
func TestConsoleOfVMThatDoesNotStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		w.add(t, armsim.Fault{Kind: armsim.FaultNoBoot})
		m := w.buy(t)
		time.Sleep(5 * time.Minute)
		lines, err := w.provider.Boots().Console(t.Context(), m.Claim, m.ProviderID)
		if err != nil || len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "Kernel panic - not syncing") {
			t.Errorf("%q, %v", lines, err)
		}
		if n := q.count("/bootdiagnostics/"); n != 1 {
			t.Errorf("%d blobs were read", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestConsoleThatIsNotToBeHad(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		m := w.buy(t)
		if lines, err := w.provider.Boots().Console(t.Context(), "general-none", ""); err != nil || lines != nil {
			t.Errorf("of no machine: %q, %v", lines, err)
		}
		for answer, want := range map[string]string{
			"refused": "ask where the serial log of virtual machine aks-general-abc12 is", "blob refused": "answers 403 Forbidden",
		} {
			q.answer = func(r *http.Request) *http.Response {
				path := strings.ToLower(r.URL.Path)
				if answer == "refused" && strings.HasSuffix(path, "/retrievebootdiagnosticsdata") || strings.HasPrefix(path, "/bootdiagnostics/") {
					return answerWith(r, http.StatusForbidden, `{"error":{"code":"AuthorizationFailed","message":"No."}}`)
				}
				return nil
			}
			lines, err := w.provider.Boots().Console(t.Context(), m.Claim, m.ProviderID)
			if lines != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sig=") {
				t.Errorf("%s: %q, %v", answer, lines, err)
			}
		}
		// A machine of which Azure keeps no console: it was made by an older version, say.
		q.answer = func(r *http.Request) *http.Response {
			if strings.HasSuffix(strings.ToLower(r.URL.Path), "/virtualmachines/aks-general-abc12") {
				return answerWith(r, http.StatusOK, `{"location": "eastus", "properties": {}}`)
			}
			return nil
		}
		before := q.count("retrievebootdiagnosticsdata")
		if lines, err := w.provider.Boots().Console(t.Context(), m.Claim, m.ProviderID); err != nil || lines != nil {
			t.Errorf("without boot diagnostics: %q, %v", lines, err)
		}
		if n := q.count("retrievebootdiagnosticsdata"); n != before {
			t.Error("Azure was asked for the console of a machine without boot diagnostics")
		}
		q.answer = nil
		w.deleteAll(t)
	}, armtest.Realistic)
}

// AKS says itself why a machine of its own failed.
func TestAKSMachineHasNoConsole(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		m := w.buy(t)
		if lines, err := w.provider.Boots().Console(t.Context(), m.Claim, m.ProviderID); err != nil || len(lines) > 0 {
			t.Errorf("%q, %v", lines, err)
		}
		w.deleteAll(t)
	})
}
