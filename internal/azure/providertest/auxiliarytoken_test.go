package providertest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// tokens is a server of tokens of the galleries' tenant, beside a simulated Azure
// that asks for them.
type tokens struct {
	http.RoundTripper
	server *armsim.Server
	scope  string
	asked  atomic.Int64
	status int    // instead of a token
	body   string // instead of a token
}

func (s *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "tokens.test" {
		return s.RoundTripper.RoundTrip(r)
	}
	s.asked.Add(1)
	s.scope = r.URL.Query().Get("scope")
	if s.status != 0 || s.body != "" {
		return answerWith(r, max(s.status, http.StatusOK), s.body), nil
	}
	token, expires := s.server.ForeignToken()
	text, err := json.Marshal(azcore.AccessToken{Token: token, ExpiresOn: expires})
	if err != nil {
		return nil, err
	}
	return answerWith(r, http.StatusOK, string(text)), nil
}

// foreignGalleries makes a world whose shared galleries are another tenant's.
func foreignGalleries(c *armsim.Config) { c.ForeignSubscriptions = []string{galleries} }

// useForeign makes the next process one that buys with their images.
func (w *world) useForeign(t *testing.T, server string) *tokens {
	t.Helper()
	w.stop()
	s := &tokens{RoundTripper: w.HTTP.Transport, server: w.Server}
	w.HTTP = &http.Client{Transport: s}
	w.config.SIGSubscriptionID, w.config.SIGTokenServer = galleries, server
	w.start(t)
	images, err := w.provider.ResolveImages(t.Context(), w.class, w.class.KubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	w.class.Images = images
	return s
}

func TestAuxiliaryTokenForGalleryTenantIsRenewed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.useForeign(t, "https://tokens.test/token")
		buy := func(claim string) {
			t.Helper()
			m, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand()))
			if err != nil || !strings.HasPrefix(m.ImageID, "/subscriptions/"+galleries+"/") {
				t.Errorf("%s: %+v, %v", claim, m, err)
			}
		}
		for _, step := range []struct {
			claim string
			wait  time.Duration
			asked int64
		}{
			{"general-aaaaa", 0, 1}, {"general-bbbbb", 50 * time.Minute, 1}, {"general-ccccc", 6 * time.Minute, 2},
		} {
			time.Sleep(step.wait)
			buy(step.claim)
			if n := s.asked.Load(); n != step.asked {
				t.Errorf("after %s the token server was asked %d times, want %d", step.claim, n, step.asked)
			}
		}
		if s.scope != "https://management.azure.com/.default" {
			t.Errorf("a token was asked for scope %q", s.scope)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, foreignGalleries)
}

func TestAuxiliaryTokenErrorNamesWhatIsMissing(t *testing.T) {
	for name, row := range map[string]struct {
		server string
		spoil  func(*tokens)
		want   string
	}{
		"no token server": {"", nil, "is not authorized to access linked subscription"},
		"one that refuses": {"https://tokens.test/token", func(s *tokens) { s.status = http.StatusForbidden },
			"SIG_ACCESS_TOKEN_SERVER_URL https://tokens.test/token: it answers 403 Forbidden"},
		"one with a key of its own": {"https://me:secret@tokens.test/token?code=secret", func(s *tokens) { s.status = http.StatusForbidden },
			"SIG_ACCESS_TOKEN_SERVER_URL https://***@tokens.test/token?code=***: it answers 403 Forbidden"},
		"one that talks HTML": {"https://tokens.test/token", func(s *tokens) { s.body = "<html>" },
			"not a token in JSON with the fields Token and ExpiresOn"},
		"an incomplete answer": {"https://tokens.test/token",
			func(s *tokens) { s.body = `{"access_token": "secret"}` }, "lacks Token or ExpiresOn"},
		"a token of nobody's": {"https://tokens.test/token",
			func(s *tokens) { s.body = `{"Token": "x", "ExpiresOn": "2100-01-01T00:00:00Z"}` }, "is not authorized to access linked subscription"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.useForeign(t, row.server)
				if row.spoil != nil {
					row.spoil(s)
				}
				_, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
				if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want %q", err, row.want)
				}
				var refused *launch.Refused
				if errors.As(err, &refused) && refused.Failure.Capacity() {
					t.Errorf("taken for a lack of capacity: %v", err)
				}
				if blocked := w.blocked("Standard_D4s_v5"); len(blocked) != 0 {
					t.Errorf("blocked are %v", blocked)
				}
				if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				w.noLeaks(t)
			}, foreignGalleries)
		})
	}
}

func TestAuxiliaryTokenNotNeededByAKSMachines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartAs(t, config.ModeAKSMachines)
		s := w.useForeign(t, "https://tokens.test/token")
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Error(err)
		}
		if n := s.asked.Load(); n != 0 {
			t.Errorf("the token server was asked %d times", n)
		}
	}, foreignGalleries)
}
