package ratelimit

import (
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Guard returns a policy that asks before each request which changes something whether
// it may be sent. It belongs behind the limiter, where requests wait.
func Guard(mayWrite func() error) policy.Policy { return guard{mayWrite} }

type guard struct{ mayWrite func() error }

// Do sends a request, or refuses it with a [Withheld].
func (g guard) Do(request *policy.Request) (*http.Response, error) {
	if raw := request.Raw(); changes(raw.Method, raw.URL.Path) {
		if err := g.mayWrite(); err != nil {
			return nil, &Withheld{err}
		}
	}
	return request.Next()
}

// changes reports whether a request changes something in Azure. POST asks questions,
// too; of those that do something, deleteMachines is what nap sends.
func changes(method, path string) bool {
	switch method {
	case http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	case http.MethodPost:
		return strings.HasSuffix(strings.ToLower(path), "/deletemachines")
	}
	return false
}

// Withheld is the error of a request that was not sent. It says nothing about Azure,
// and the SDK does not repeat it.
type Withheld struct{ why error }

// Error says why.
func (w *Withheld) Error() string { return w.why.Error() }

// Unwrap gives the reason.
func (w *Withheld) Unwrap() error { return w.why }

// NonRetriable tells the SDK not to try again by itself.
func (w *Withheld) NonRetriable() {}
