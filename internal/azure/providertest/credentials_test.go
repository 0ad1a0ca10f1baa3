package providertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

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

func TestTokenExpiryDuringManyLaunchesNeedsFewTokens(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		credential := &longLived{TokenCredential: w.Credential}
		w.Credential = credential
		w.start(t)
		for round, at := range []time.Duration{55*time.Minute - time.Second,
			55 * time.Minute, time.Hour - time.Second, time.Hour, time.Hour + time.Second} {
			time.Sleep(at)
			before := credential.asked.Load()
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					if _, err := w.provider.Launch(t.Context(),
						w.order(fmt.Sprintf("general-%d%02d", round, i), sizes("Standard_D4s_v5"), onDemand())); err != nil {
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

func TestTokenLifetimeIsAtMostTwoHours(t *testing.T) {
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
