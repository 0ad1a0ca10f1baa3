package resourcelist

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

type entry struct {
	Name string `json:"name"`
}

// An answer that is no list is an error: the machines of an empty one would all be gone.
func TestOnlyListsAreRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"value":[{"name":"a"},{"name":"b","tags":{"x":[1,{}]}}]}`: "a b",
		"\xef\xbb\xbf" + `{"value":[{"name":"a"}]}`:                 "a",
		`{"nextLink":null,"extra":{"value":[1]},"value":[null]}`:    "",
		`{"value":[]}`:                  "",
		`{"value":null}`:                "",
		`{}`:                            "",
		`{"error":{"code":"Throttle"}}`: `no "value"`,
		``:                              "broke off",
		`{"value":[{"name":"a"}`:        "broke off",
		`{"value":[{"name":"a"},`:       "broke off",
		`{"value":[{"name":`:            "broke off",
		`{"value":{"name":"a"}}`:        "want [",
		`[{"name":"a"}]`:                "want {",
		`{"value":[{"name":1}]}`:        "cannot unmarshal number",
		`<html>`:                        "invalid character",
	} {
		got, err := read(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		if text := strings.TrimSpace(strings.Join(got, " ")); err == nil && text != want {
			t.Errorf("%s: got %q, want %q", body, text, want)
		} else if err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// A page whose body breaks off is asked for again, and counts once.
func TestPageThatBreaksOffIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		breaks, wantAsked int
		want              string
	}{
		"twice":  {2, 4, "a b c"},
		"always": {100, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			got, err := read(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.URL.Query().Get("page") == "" {
					fmt.Fprintf(w, `{"value":[{"name":"a"}],"nextLink":"https://%s%s?page=2"}`, r.Host, r.URL.Path)
					return
				}
				body := `{"value":[{"name":"b"},{"name":"c"}]}`
				if asked <= 1+c.breaks {
					w.Header().Set("Content-Length", fmt.Sprint(len(body)))
					body = body[:len(body)-4]
				}
				fmt.Fprint(w, body)
			}))
			if asked != c.wantAsked || (err == nil) != (c.want != "") || strings.Join(got, " ") != c.want {
				t.Errorf("asked %d times for %v, %v; want %d times for %q", asked, got, err, c.wantAsked, c.want)
			}
		})
	}
}

// What Azure answers instead of a list is what the caller sees.
func TestRefusalIsAResponseError(t *testing.T) {
	_, err := read(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":{"code":"AuthorizationFailed","message":"no"}}`)
	}))
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.ErrorCode != "AuthorizationFailed" || refusal.StatusCode != http.StatusForbidden {
		t.Errorf("%v, want AuthorizationFailed", err)
	}
}

// read reads a list from a server, as names.
func read(t *testing.T, handler http.Handler) ([]string, error) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	client, err := arm.NewClient("test", "v1.0.0", token{}, &arm.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: server.Client(), Retry: policy.RetryOptions{MaxRetries: -1},
		Cloud: cloud.Configuration{
			ActiveDirectoryAuthorityHost: server.URL,
			Services:                     map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: server.URL, Audience: "test"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read[*entry](t.Context(), client, "/subscriptions/s/things", "2025-04-01")
	all = slices.DeleteFunc(all, func(e *entry) bool { return e == nil })
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.Name
	}
	return names, err
}

type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t"}, nil
}

// A list whose pages go round in a circle has no end.
func TestPagesThatRepeatAreRefused(t *testing.T) {
	asked := 0
	_, err := read(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 10 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"value":[{"name":"a"}],"nextLink":"https://%s%s?page=2"}`, r.Host, r.URL.Path)
	}))
	if err == nil || !strings.Contains(err.Error(), "names an earlier page") {
		t.Errorf("got %v, want an error which says so", err)
	}
}
