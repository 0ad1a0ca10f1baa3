package providertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// unfinished is an Azure that accepts network interfaces and, while it hangs, does
// not come to an end with them.
type unfinished struct {
	http.RoundTripper
	hangs atomic.Bool
}

func (u *unfinished) RoundTrip(r *http.Request) (*http.Response, error) {
	const operation = "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/1"
	if r.URL.Path == operation {
		return &http.Response{
			StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(`{"status": "InProgress"}`)),
		}, nil
	}
	answer, err := u.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && u.hangs.Load() && strings.Contains(r.URL.Path, "/networkInterfaces/") {
		answer.Header.Set("Azure-AsyncOperation", armtest.Endpoint+operation)
		body, err := io.ReadAll(answer.Body)
		answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), `"Succeeded"`, `"Updating"`)))
		return answer, err
	}
	return answer, err
}

func TestAnInterfaceThatAzureNeverFinishesIsNotWaitedForForever(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		azure := &unfinished{RoundTripper: w.HTTP.Transport}
		azure.hangs.Store(true)
		w.HTTP = &http.Client{Transport: azure}
		w.restartAs(t, config.ModeVMs)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		order := w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())
		_, err := w.provider.Launch(ctx, order)
		if want := "create network interface aks-general-abc12: it is not finished within 2m0s; it is tried again"; err == nil || err.Error() != want {
			t.Errorf("the launch gives %v, want %q", err, want)
		}
		if took := time.Since(begin); took > 3*time.Minute {
			t.Errorf("it took %v", took)
		}
		azure.hangs.Store(false)
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Errorf("the next try: %v", err)
		}
		if n := w.Server.Stats()["vm.accepted"]; n != 1 {
			t.Errorf("%d machines were bought, want one", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// longLived is a credential whose tokens claim to live longer than they do, as
// after a clock was set back.
type longLived struct {
	azcore.TokenCredential
	claim time.Duration
	asked atomic.Int64
}

func (l *longLived) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	l.asked.Add(1)
	time.Sleep(time.Second) // while one asks, the others come
	token, err := l.TokenCredential.GetToken(ctx, o)
	if l.claim > 0 {
		token.ExpiresOn = time.Now().Add(l.claim)
	}
	return token, err
}

func TestManyLaunchesAtTheMomentATokenExpiresTakeOneNewTokenEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		credential := &longLived{TokenCredential: w.Credential}
		w.Credential = credential
		w.start(t)
		for round, at := range []time.Duration{55*time.Minute - time.Second, 55 * time.Minute, time.Hour - time.Second, time.Hour, time.Hour + time.Second} {
			time.Sleep(at)
			before := credential.asked.Load()
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					if _, err := w.provider.Launch(t.Context(), w.order(fmt.Sprintf("general-%d%02d", round, i), sizes("Standard_D4s_v5"), onDemand())); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			// Each of the SDK's clients keeps a token of its own.
			if n := credential.asked.Load() - before; n > 12 {
				t.Errorf("round %d: %d tokens were asked for", round, n)
			}
		}
		for code, n := range w.Server.Stats() {
			if strings.Contains(code, "AuthenticationToken") && n > 0 {
				t.Errorf("%s: %d", code, n)
			}
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestATokenIsNotBelievedForLongerThanTwoHours(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.Credential = &longLived{TokenCredential: w.Credential, claim: 24 * time.Hour}
		w.start(t)
		time.Sleep(2*time.Hour + time.Minute)
		if _, err := w.provider.List(t.Context()); err != nil {
			t.Errorf("after two hours: %v", err)
		}
	})
}
