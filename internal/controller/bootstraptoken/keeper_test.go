package bootstraptoken

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
)

// server is the API server: it keeps Secrets, tells its time, and takes tokens as long
// as they live by that time.
type server struct {
	client.WithWatch
	inner client.WithWatch // what is stored, whatever is refused

	mu      sync.Mutex
	ahead   time.Duration // of the keepers' clock
	refuses error         // what every request is answered with
	made    []string      // every secret half that there ever was
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	s := &server{}
	byType := func(o client.Object) []string { return []string{string(o.(*corev1.Secret).Type)} }
	s.inner = fake.NewClientBuilder().WithObjects(objects...).WithIndex(&corev1.Secret{}, "type", byType).Build()
	s.WithWatch = interceptor.NewClient(s.inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return s.or(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.or(func() error { return c.List(ctx, list, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.or(func() error { return c.Delete(ctx, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.or(func() error {
				o.SetCreationTimestamp(metav1.NewTime(s.now().Truncate(time.Second)))
				s.made = append(s.made, string(o.(*corev1.Secret).Data[keySecret]))
				return c.Create(ctx, o, opts...)
			})
		},
	})
	return s
}

func (s *server) or(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return s.refuses
	}
	return do()
}

func (s *server) now() time.Time { return time.Now().Add(s.ahead) }

func (s *server) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = err
}

// takes reports whether the API server knows a token, now or after a while.
func (s *server) takes(t *testing.T, token jointoken.Token, after time.Duration) bool {
	t.Helper()
	id, half, _ := strings.Cut(token.Reveal(), ".")
	var secret corev1.Secret
	err := s.inner.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + id}, &secret)
	if err != nil || string(secret.Data["token-secret"]) != half || string(secret.Data["usage-bootstrap-authentication"]) != "true" {
		return false
	}
	if string(secret.Data["expiration"]) == "" {
		return true
	}
	ends, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	return err == nil && s.now().Add(after).Before(ends)
}

// counts is what a keeper counts, in a goroutine of its own.
type counts struct {
	mu           sync.Mutex
	left, late   time.Duration
	made, failed int
}

// renewals are how many tokens were made and how many could not be.
func (c *counts) renewals() (made, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, c.failed
}

// remaining is how long the token is still good for.
func (c *counts) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// overdue is by how long the renewal of the token is late.
func (c *counts) overdue() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.late
}

func (c *counts) Left(left, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.late = left, late
}

func (c *counts) Renewed(ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.made++
	} else {
		c.failed++
	}
}

// short are tokens that live 60 s, and machines that join within 20.
func short(mode Mode) Settings {
	return Settings{Mode: mode, Life: time.Minute, Join: 20 * time.Second}
}

// keep runs a keeper until the test ends, and returns what it logs.
func keep(t *testing.T, s *server, settings Settings) (*Keeper, *counts, *bytes.Buffer) {
	t.Helper()
	numbers, text := &counts{}, &bytes.Buffer{}
	k, err := New(s, clock.RealClock{}, settings, numbers)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(text, nil))))
	done := make(chan error, 1)
	go func() { done <- k.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	// The keeper acts on whole seconds from now on. The test looks between them: at the
	// same moment either could be the first.
	time.Sleep(time.Second / 2)
	return k, numbers, text
}

func secret(id, half string, life time.Duration, change ...func(*corev1.Secret)) *corev1.Secret {
	token := newToken(id, half)
	token.Expires = time.Now().Add(life)
	s := token.object()
	for _, f := range change {
		f(s)
	}
	return s
}

func TestOwnTokenOutlivesJoinTimeOfEveryLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		k, numbers, _ := keep(t, s, short(Own))
		seen := map[string]bool{}
		for range 600 { // ten minutes, a launch each second
			token, err := k.Token(t.Context())
			if err != nil || !s.takes(t, token, 20*time.Second) {
				t.Fatalf("after %d tokens: %v; the API server would refuse the machine", len(seen), err)
			}
			seen[token.Reveal()] = true
			time.Sleep(time.Second)
		}
		// The last one may have been made after the last launch.
		made, failed := numbers.renewals()
		unused := made - len(seen)
		if len(seen) < 19 || len(seen) > 21 || unused < 0 || unused > 1 || failed > 0 {
			t.Errorf("%d tokens, %d made, %d failed: want one in 30 s", len(seen), made, failed)
		}
		var list corev1.SecretList
		if err := s.List(t.Context(), &list); err != nil || len(list.Items) > 3 {
			t.Errorf("%d Secrets are left, %v", len(list.Items), err)
		}
	})
}

func TestOldTokenStaysUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		k, _, _ := keep(t, s, short(Own))
		first, _ := k.Token(t.Context())
		time.Sleep(35 * time.Second)
		if second, _ := k.Token(t.Context()); second.Equal(first) {
			t.Error("the token is not renewed at half of its life")
		}
		if !s.takes(t, first, 20*time.Second) {
			t.Error("a machine that was launched with the token before cannot join")
		}
	})
}

func TestTokenByClockOfAPIServer(t *testing.T) {
	for _, ahead := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			s.ahead = ahead
			k, _, _ := keep(t, s, short(Own))
			for range 120 {
				token, err := k.Token(t.Context())
				if err != nil || !s.takes(t, token, 20*time.Second) {
					t.Fatalf("with the API server's clock %s before ours: %v", ahead, err)
				}
				if s.takes(t, token, 61*time.Second) {
					t.Fatalf("with the API server's clock %s before ours the token lives too long", ahead)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

func TestTwoLeadersShareTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, _, _ := keep(t, s, short(Own))
		b, _, _ := keep(t, s, short(Own))
		for range 300 {
			for _, k := range []*Keeper{a, b} {
				if token, err := k.Token(t.Context()); err != nil || !s.takes(t, token, 20*time.Second) {
					t.Fatalf("%v", err)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

func TestTokenOfEarlierLeaderIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, secret("nap002", "0123456789abcdef", 50*time.Second))
		k, numbers, _ := keep(t, s, short(Own))
		made, _ := numbers.renewals()
		if token, err := k.Token(t.Context()); token.Reveal() != "nap002.0123456789abcdef" || err != nil || made != 0 {
			t.Errorf("%v, and %d tokens are made", err, made)
		}
	})
}

func TestNoLaunchWhileAPIServerRefusesRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		k, numbers, _ := keep(t, s, short(Own))
		s.refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "bootstrap-token-nap001", errors.New("no role")))
		launched := 0
		for range 60 {
			if token, err := k.Token(t.Context()); err == nil {
				launched++
				if !s.takes(t, token, 20*time.Second) {
					t.Fatal("launched with a token that ends too early")
				}
			}
			time.Sleep(time.Second)
		}
		unusable := k.Finding()
		if launched < 35 || launched > 40 {
			t.Errorf("%d launches, want one a second for the first 40 s less one", launched)
		}
		if unusable == nil || unusable.Reason != v1beta1.ReasonBootstrapTokenExpiring || !strings.Contains(unusable.Message, "docs/bootstrap-tokens.md") {
			t.Errorf("says %v", unusable)
		}
		time.Sleep(4 * time.Second) // the keeper looks every 3 s
		if left := numbers.remaining(); left != 0 {
			t.Errorf("%s left", left)
		}
		s.refuse(nil)
		time.Sleep(4 * time.Second)
		if token, err := k.Token(t.Context()); err != nil || !s.takes(t, token, 20*time.Second) || k.Finding() != nil {
			t.Errorf("with the permission: %v", err)
		}
	})
}

// A token that lives less than an hour is no reason for an alert: it is renewed at half of its life.
func TestRenewalIsLateWhenItFailsAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		_, numbers, _ := keep(t, s, Settings{Mode: Own, Life: 40 * time.Minute, Join: 15 * time.Minute})
		for range 3 * 60 {
			if late := numbers.overdue(); late != 0 || numbers.remaining() == 0 {
				t.Fatalf("late by %s with %s left, and nothing is wrong", late, numbers.remaining())
			}
			time.Sleep(time.Minute)
		}
		s.refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "bootstrap-token-nap001", errors.New("no role")))
		longest := time.Duration(0)
		for range 41 {
			if late, left := numbers.overdue(), numbers.remaining(); late != max(0, 20*time.Minute-left) && left > 0 || late > 0 && left == 0 {
				t.Fatalf("late by %s with %s left", late, left)
			}
			longest = max(longest, numbers.overdue())
			time.Sleep(time.Minute)
		}
		if longest < 15*time.Minute {
			t.Errorf("late by %s at most, want about half of the life", longest)
		}
	})
}

func TestRenewalByOthersIsLateInTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, secret("abcdef", "0123456789abcdef", 3*time.Hour))
		settings := short(Given)
		settings.Given = jointoken.New("abcdef.0123456789abcdef")
		_, numbers, _ := keep(t, s, settings)
		time.Sleep(119 * time.Minute)
		if late := numbers.overdue(); late != 0 {
			t.Errorf("late by %s with %s left", late, numbers.remaining())
		}
		time.Sleep(31 * time.Minute)
		if late := numbers.overdue(); late < 29*time.Minute || late > 31*time.Minute {
			t.Errorf("late by %s with %s left, want half an hour", late, numbers.remaining())
		}
	})
}

func TestDeletedAndEditedTokensAreReplaced(t *testing.T) {
	for what, spoil := range map[string]func(*corev1.Secret){
		"deleted":            nil,
		"ends at once":       func(s *corev1.Secret) { s.Data[keyExpires] = []byte(time.Now().UTC().Format(time.RFC3339)) },
		"another token":      func(s *corev1.Secret) { s.Data[keySecret] = []byte("fedcba9876543210") },
		"no token":           func(s *corev1.Secret) { s.Data[keySecret] = []byte("secret") },
		"not for machines":   func(s *corev1.Secret) { delete(s.Data, keyUsage) },
		"no time":            func(s *corev1.Secret) { s.Data[keyExpires] = []byte("tomorrow") },
		"made never to end":  func(s *corev1.Secret) { delete(s.Data, keyExpires) },
		"of another content": func(s *corev1.Secret) { s.Data = nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			k, _, _ := keep(t, s, short(Own))
			token, err := k.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var stored corev1.Secret
			key := client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + token.Reveal()[:6]}
			if err := s.Get(t.Context(), key, &stored); err != nil {
				t.Fatal(err)
			}
			if spoil == nil {
				err = s.inner.Delete(t.Context(), &stored)
			} else {
				spoil(&stored)
				err = s.Update(t.Context(), &stored)
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			for range 60 {
				if token, err := k.Token(t.Context()); err != nil || !s.takes(t, token, 20*time.Second) {
					t.Fatalf("%s: %v", what, err)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

func TestClusterTokenThatLivesLongestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, secret("aaaaaa", "0123456789abcdef", time.Minute), secret("bbbbbb", "0123456789abcdef", 2*time.Minute),
			secret("cccccc", "0123456789abcdef", time.Hour, func(s *corev1.Secret) { delete(s.Data, keyUsage) }),
			secret("dddddd", "0123456789abcdef", -time.Minute))
		k, _, _ := keep(t, s, short(Cluster))
		if token, err := k.Token(t.Context()); err != nil || token.Reveal() != "bbbbbb.0123456789abcdef" {
			t.Errorf("joins with %.6s, %v", token, err)
		}
		time.Sleep(105 * time.Second)
		if _, err := k.Token(t.Context()); err == nil {
			t.Error("launched although the token ends in 15 s")
		}
		if err := s.Create(t.Context(), secret("eeeeee", "0123456789abcdef", time.Hour)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if token, err := k.Token(t.Context()); err != nil || token.Reveal() != "eeeeee.0123456789abcdef" {
			t.Errorf("joins with %.6s, %v", token, err)
		}
	})
}

func TestGivenTokenUntilItEnds(t *testing.T) {
	value := jointoken.New("abcdef.0123456789abcdef")
	settings := short(Given)
	settings.Given = value
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "bootstrap-token-abcdef", nil)
	for _, tt := range []struct {
		what    string
		half    string // of the Secret; empty: there is none
		life    time.Duration
		refuses error
		want    string
	}{
		{"lives", "0123456789abcdef", time.Hour, nil, ""},
		{"ends", "0123456789abcdef", 10 * time.Second, nil, v1beta1.ReasonBootstrapTokenExpiring},
		{"is not there", "", 0, nil, v1beta1.ReasonBootstrapTokenMissing},
		{"is another", "fedcba9876543210", time.Hour, nil, v1beta1.ReasonBootstrapTokenMissing},
		{"may not be read", "", 0, forbidden, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			if tt.half != "" {
				if err := s.Create(t.Context(), secret("abcdef", tt.half, tt.life)); err != nil {
					t.Fatal(err)
				}
			}
			s.refuse(tt.refuses)
			k, _, _ := keep(t, s, settings)
			token, err := k.Token(t.Context())
			if tt.want == "" && (err != nil || !token.Equal(value)) {
				t.Errorf("%s: %v", tt.what, err)
			}
			var unusable *Unusable
			if tt.want != "" && (!errors.As(err, &unusable) || unusable.Reason != tt.want) {
				t.Errorf("%s: %v, want %s", tt.what, err, tt.want)
			}
		})
	}
	settings.Given = jointoken.New("secret")
	if _, err := New(nil, clock.RealClock{}, settings, &counts{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a token of no form: %v", err)
	}
}

func TestSecretHalfIsNowherePrinted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		k, _, text := keep(t, s, short(Own))
		time.Sleep(45 * time.Second)
		s.refuse(errors.New("down"))
		time.Sleep(time.Minute)
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(text, format+format+format, k.current, &k.current, k.Finding())
		}
		fmt.Fprintf(text, "%v %+v %#v", k, k, k)
		inJSON, err := json.Marshal(k.current)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(inJSON)
		if len(s.made) < 2 {
			t.Fatalf("%d tokens were made", len(s.made))
		}
		for _, half := range s.made {
			if half != "" && strings.Contains(text.String(), half) {
				t.Errorf("the secret half %.2s... is in: %s", half, text)
			}
		}
	})
}
