// Package bootstraptoken sees to it that machines get bootstrap tokens that live
// until the machines have joined.
//
// A plain machine proves with a token that it may ask for its certificate. Tokens are
// Secrets of the type bootstrap.kubernetes.io/token in kube-system, and they end. The
// [Keeper] makes tokens of nap's own and renews them at half of their life, or
// watches those of others; [Keeper.Token] is what a launch gets, and is an error
// rather than a token that ends before the machine can have joined. An old token stays
// until it ends by itself: machines that have it may still be booting.
//
// The secret half of a token is in the Secret and in the machine's boot data, and
// nowhere else: a [Token] prints as its name alone.
package bootstraptoken

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
)

const (
	// namePrefix is what the API server demands of a token's Secret, before its id.
	namePrefix = "bootstrap-token-"
	// Group is what the API server takes machines for that ask with a token of nap's
	// own, besides system:bootstrappers.
	Group = "system:bootstrappers:nap"
)

// ids are the tokens of nap's own. Their names are fixed, so that the role names
// them. A token is renewed at half of its life, so two are alive at a time; the third
// is for one that was spoilt by hand.
func ids() []string { return []string{"nap001", "nap002", "nap003"} }

// The keys of a token's Secret.
const (
	keyID      = "token-id"
	keySecret  = "token-secret"
	keyExpires = "expiration"
	keyUsage   = "usage-bootstrap-authentication"
	keyGroups  = "auth-extra-groups"
)

var form = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// Token is a bootstrap token. The zero value is none.
type Token struct {
	// ID is the half that is no secret.
	ID string
	// Expires is when the API server does not take it any more; zero for never.
	Expires time.Time

	// value is what a machine joins with, ID.SECRET.
	value jointoken.Token
}

// newToken is the token of both halves.
func newToken(id, secret string) Token { return Token{ID: id, value: jointoken.New(id + "." + secret)} }

// String names the token without its secret.
func (t Token) String() string { return "Secret " + metav1.NamespaceSystem + "/" + namePrefix + t.ID }

// GoString is String, so that no format prints the secret.
func (t Token) GoString() string { return t.String() }

// given reads a token as a variable has it.
func given(value jointoken.Token) (Token, error) {
	m := form.FindStringSubmatch(value.Reveal())
	if m == nil {
		return Token{}, errors.New("the bootstrap token is not of the form abcdef.0123456789abcdef")
	}
	return newToken(m[1], m[2]), nil
}

// parse reads a Secret. The error says why the API server would not take its token.
func parse(s *corev1.Secret) (Token, error) {
	name := metav1.NamespaceSystem + "/" + s.Name
	t := newToken(string(s.Data[keyID]), string(s.Data[keySecret]))
	switch {
	case s.DeletionTimestamp != nil:
		return Token{}, fmt.Errorf("secret %s is being deleted", name)
	case s.Type != corev1.SecretTypeBootstrapToken:
		return Token{}, fmt.Errorf("secret %s is of type %s, not %s", name, s.Type, corev1.SecretTypeBootstrapToken)
	case !form.MatchString(t.value.Reveal()) || s.Name != namePrefix+t.ID:
		return Token{}, fmt.Errorf("secret %s: %s and %s do not make a token of that name", name, keyID, keySecret)
	case string(s.Data[keyUsage]) != "true":
		return Token{}, fmt.Errorf("secret %s is not for authentication: %s is not true", name, keyUsage)
	}
	if end := string(s.Data[keyExpires]); end != "" {
		var err error
		if t.Expires, err = time.Parse(time.RFC3339, end); err != nil {
			return Token{}, fmt.Errorf("secret %s: %s is not a time such as 2006-01-02T15:04:05Z", name, keyExpires)
		}
	}
	return t, nil
}

// secret is the Secret of a token of nap's own.
func (t Token) object() *corev1.Secret {
	_, secret, _ := strings.Cut(t.value.Reveal(), ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: namePrefix + t.ID, Labels: map[string]string{"app.kubernetes.io/name": "nap"},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			keyID: []byte(t.ID), keySecret: []byte(secret), keyUsage: []byte("true"), keyGroups: []byte(Group),
			keyExpires:    []byte(t.Expires.UTC().Format(time.RFC3339)),
			"description": []byte("nap's machines join the cluster with it"),
		},
	}
}
