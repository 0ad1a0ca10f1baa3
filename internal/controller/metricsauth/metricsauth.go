// Package metricsauth serves metrics and profiles only to requests whose token the API
// server knows, and only where its roles allow them to that user: the way of Kubernetes'
// own components. Roles name the path: nonResourceURLs /metrics, verb get.
//
//	request ── Bearer token ──> TokenReview ── user ──> SubjectAccessReview ── allowed ──> handler
//
// Start with [Filter].
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// remember is how long an allowed token is not asked about again: a collector comes
	// every few seconds, and a token that is taken back must not live on for long.
	remember = time.Minute
	// askWithin bounds both questions of one request.
	askWithin = 10 * time.Second
	// mostRemembered bounds the memory; above it everything is asked again.
	mostRemembered = 256
)

// reviewer asks the API server and remembers what it has allowed.
type reviewer struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	mu sync.Mutex
	// allowed is until when a request needs no question. The key has the token's hash,
	// never the token.
	allowed map[string]time.Time
}

// Filter returns what wraps the handlers of the metrics server. A request without a
// token, or with one that the API server does not know, gets 401; a known user without
// the permission 403; 500 when the API server does not answer. No answer and no line of
// the log has the token in it.
func Filter(kube kubernetes.Interface, clk clock.PassiveClock) func(logr.Logger, http.Handler) (http.Handler, error) {
	r := &reviewer{kube: kube, clock: clk, allowed: map[string]time.Time{}}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			ctx, cancel := context.WithTimeout(req.Context(), askWithin)
			defer cancel()
			code, text, err := r.review(ctx, req)
			if err != nil {
				log.Error(err, "a request for metrics could not be checked", "path", req.URL.Path)
			}
			if code == http.StatusOK {
				next.ServeHTTP(w, req)
				return
			}
			if code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, text, code)
		}), nil
	}
}

// review returns the status that the request gets, and the text where that is not OK.
func (r *reviewer) review(ctx context.Context, req *http.Request) (code int, text string, err error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, "give a token that the API server knows: Authorization: Bearer TOKEN", nil
	}
	verb, path := strings.ToLower(req.Method), req.URL.Path
	key := fmt.Sprintf("%x %s %s", sha256.Sum256([]byte(token)), verb, path)
	if r.remembers(key) {
		return http.StatusOK, "", nil
	}
	who, err := r.kube.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, "the API server could not be asked about the token", fmt.Errorf("ask about a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, "the API server does not know the token", nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := r.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, "the API server could not be asked what " + user.Username + " may do",
			fmt.Errorf("ask what %s may do: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf("%s may not %s %s: bind a ClusterRole with nonResourceURLs [%s] and verbs [%s]",
			user.Username, verb, path, path, verb), nil
	}
	r.keep(key)
	return http.StatusOK, "", nil
}

func (r *reviewer) remembers(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().Before(r.allowed[key])
}

func (r *reviewer) keep(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.allowed) >= mostRemembered {
		clear(r.allowed)
	}
	r.allowed[key] = r.clock.Now().Add(remember)
}
