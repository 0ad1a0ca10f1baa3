package metricsauth

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// server is an API server that knows the token "good" of reader, who may get /metrics,
// and the token "other" of a user without permissions. The counter says how many
// questions it got.
func server(questions *int, out error) *fake.Clientset {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		*questions++
		if out != nil {
			return true, nil, out
		}
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		users := map[string]string{"good": "reader", "other": "stranger"}
		review.Status.User.Username, review.Status.Authenticated = users[review.Spec.Token], users[review.Spec.Token] != ""
		return true, review, nil
	})
	kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		*questions++
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		path := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && path.Path == "/metrics" && path.Verb == "get"
		return true, review, nil
	})
	return kube
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, h http.Handler, path, authorization string) (int, string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func protected(t *testing.T, kube *fake.Clientset, clk *clocktesting.FakePassiveClock, log *bytes.Buffer) http.Handler {
	t.Helper()
	logger := funcr.New(func(prefix, args string) { log.WriteString(prefix + args) }, funcr.Options{})
	h, err := Filter(kube, clk)(logger, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("secret"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOnlyAllowedTokensReadMetrics(t *testing.T) {
	var questions int
	var log bytes.Buffer
	h := protected(t, server(&questions, nil), clocktesting.NewFakePassiveClock(time.Now()), &log)
	for _, c := range []struct {
		path, authorization string
		code                int
		text                string
	}{
		{"/metrics", "", 401, "give a token"},
		{"/metrics", "Basic good", 401, "give a token"},
		{"/metrics", "Bearer ", 401, "give a token"},
		{"/metrics", "Bearer unknown", 401, "does not know the token"},
		{"/metrics", "Bearer other", 403, "stranger may not get /metrics"},
		{"/debug/pprof/heap", "Bearer good", 403, "reader may not get /debug/pprof/heap"},
		{"/metrics", "Bearer good", 200, "secret"},
		{"/debug/pprof/heap", "Bearer good", 403, "reader may not get /debug/pprof/heap"},
	} {
		code, body := ask(t, h, c.path, c.authorization)
		if code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s with %q: got %d %q, want %d %q", c.path, c.authorization, code, body, c.code, c.text)
		}
		if code != http.StatusOK && strings.Contains(body, "secret") {
			t.Errorf("%s with %q: the body was served", c.path, c.authorization)
		}
	}
}

func TestAllowedTokenIsAskedAboutAgainAfterAMinute(t *testing.T) {
	var questions int
	var log bytes.Buffer
	clk := clocktesting.NewFakePassiveClock(time.Now())
	h := protected(t, server(&questions, nil), clk, &log)
	for range 3 {
		ask(t, h, "/metrics", "Bearer good")
	}
	if questions != 2 {
		t.Errorf("%d questions for three requests, want 2", questions)
	}
	clk.SetTime(clk.Now().Add(remember))
	if ask(t, h, "/metrics", "Bearer good"); questions != 4 {
		t.Errorf("%d questions after a minute, want 4", questions)
	}
}

func TestSilentServerLetsNothingThrough(t *testing.T) {
	var questions int
	var log bytes.Buffer
	h := protected(t, server(&questions, errors.New("connection refused")), clocktesting.NewFakePassiveClock(time.Now()), &log)
	code, body := ask(t, h, "/metrics", "Bearer good")
	if code != http.StatusInternalServerError || strings.Contains(body, "secret") {
		t.Errorf("got %d %q", code, body)
	}
	if !strings.Contains(log.String(), "connection refused") || strings.Contains(log.String(), "good") || strings.Contains(body, "good") {
		t.Errorf("the log is %q, the answer %q", log.String(), body)
	}
}
