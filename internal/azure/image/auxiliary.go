package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/mask"
)

const (
	// headerAuxiliary carries a token of the tenant that what is used belongs to.
	headerAuxiliary = "x-ms-authorization-auxiliary"
	// renewBefore is how long before its end a token is replaced.
	renewBefore = 5 * time.Minute
	// tokenTimeout ends a request for a token that hangs.
	tokenTimeout = 10 * time.Second
	// longestToken is more than any token has, in bytes.
	longestToken = 1 << 16
)

// Auxiliary is a policy for clients that create virtual machines from shared
// galleries of another tenant: it adds a token of that tenant, which a token
// server gives out. It is safe for concurrent use.
type Auxiliary struct {
	server, scope string
	transport     policy.Transporter
	now           func() time.Time

	mu    sync.Mutex
	token azcore.AccessToken
}

// NewAuxiliary returns a policy that asks the server, an URL, for tokens for
// Resource Manager's audience.
func NewAuxiliary(server, audience string, transport policy.Transporter, now func() time.Time) *Auxiliary {
	return &Auxiliary{server: server, scope: strings.TrimSuffix(audience, "/") + "/.default", transport: transport, now: now}
}

var _ policy.Policy = (*Auxiliary)(nil)

// Do adds the token to requests that create something.
func (a *Auxiliary) Do(req *policy.Request) (*http.Response, error) {
	if req.Raw().Method == http.MethodPut {
		token, err := a.current(req.Raw().Context())
		if err != nil {
			return nil, err
		}
		req.Raw().Header.Set(headerAuxiliary, "Bearer "+token)
	}
	return req.Next()
}

// current is a token that is good for a while.
func (a *Auxiliary) current(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock() // one asks, the others wait for its answer
	now := a.now()
	stale := !a.token.RefreshOn.IsZero() && now.After(a.token.RefreshOn)
	if a.token.Token == "" || stale || now.Add(renewBefore).After(a.token.ExpiresOn) {
		fresh, err := a.ask(ctx)
		if err != nil {
			return "", fmt.Errorf("get a token for the shared image galleries from SIG_ACCESS_TOKEN_SERVER_URL %s: %w",
				mask.Address(a.server), withoutAddress(err))
		}
		a.token = fresh
	}
	return a.token.Token, nil
}

// withoutAddress is an error of an HTTP client without the address, which may hold a key.
func withoutAddress(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

func (a *Auxiliary) ask(ctx context.Context) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	var token azcore.AccessToken
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server, http.NoBody)
	if err != nil {
		return token, err
	}
	query := req.URL.Query()
	query.Set("scope", a.scope)
	req.URL.RawQuery = query.Encode()
	resp, err := a.transport.Do(req)
	if err != nil {
		return token, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return token, fmt.Errorf("it answers %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestToken))
	if err != nil {
		return token, err
	}
	if err := json.Unmarshal(body, &token); err != nil {
		// The body may be a secret, so that it is not quoted.
		return token, fmt.Errorf("its answer is not a token in JSON with the fields Token and ExpiresOn: %w", err)
	}
	if token.Token == "" || token.ExpiresOn.IsZero() {
		return token, errors.New("its answer lacks Token or ExpiresOn")
	}
	return token, nil
}
