package bootstraptoken

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
)

// Mode says whose tokens machines join with.
type Mode string

// The modes.
const (
	// Own tokens are made and renewed here.
	Own Mode = "own"
	// Cluster tokens are made by others, such as AKS; the one that lives longest counts.
	Cluster Mode = "cluster"
	// Given is the one token of a setting.
	Given Mode = "given"
	// None is for machines that AKS makes.
	None Mode = "none"
)

// Modes lists the modes, the default first.
func Modes() []Mode { return []Mode{Own, Cluster, Given, None} }

const (
	// leastPause and mostPause bound how often the Secrets are looked at.
	leastPause = time.Second
	mostPause  = 15 * time.Second
	// firstLook is how long a launch waits for the first look after the start.
	firstLook = 10 * time.Second
	// othersDue is how long before the end of a token its renewal by others counts as late.
	othersDue = time.Hour
	// granularity is how exact the API server's times are: seconds, cut off.
	granularity = time.Second
)

// Settings are the options of users.
type Settings struct {
	Mode Mode
	// Life is how long a token of nap's own lives.
	Life time.Duration
	// Join is how long a machine may take from its launch until it has joined: no
	// launch gets a token that ends earlier.
	Join time.Duration
	// Given is the token of that mode.
	Given jointoken.Token
}

// Meter counts what the keeper does.
type Meter interface {
	// Left is how long the present token lives, zero when there is none, and by how long
	// its renewal is late, zero while it is not.
	Left(left, late time.Duration)
	// Renewed counts a token that was made, or could not be made.
	Renewed(ok bool)
}

// Keeper keeps a token that lives. It is a manager's runnable, and works on the
// leader alone. It is safe for concurrent use.
type Keeper struct {
	// kube reaches the API server itself: a cache would watch every Secret.
	kube     client.Client
	clock    clock.Clock
	settings Settings
	meter    Meter

	// looked is closed after the first look.
	looked chan struct{}
	first  sync.Once

	mu sync.Mutex
	// current is the token for machines, the zero value when there is none.
	current Token
	// problem is why there is none, or why it could not be renewed; nil when all is well.
	problem error
	// ahead is how far the API server's clock is before ours.
	ahead time.Duration
}

// New returns a keeper. The error says that the given token is none.
func New(kube client.Client, clk clock.Clock, s Settings, meter Meter) (*Keeper, error) {
	k := &Keeper{kube: kube, clock: clk, settings: s, meter: meter, looked: make(chan struct{})}
	if s.Mode == Given {
		var err error
		if k.current, err = given(s.Given); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// NeedLeaderElection makes the manager run the keeper on the leader alone.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start looks after the tokens until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	told := ""
	for ctx.Err() == nil {
		err := k.look(ctx)
		k.first.Do(func() { close(k.looked) })
		switch {
		case ctx.Err() != nil:
		case err == nil:
			told = ""
		case err.Error() != told: // once, and not every few seconds
			told = err.Error()
			log.FromContext(ctx).Error(err, "keeping the bootstrap token failed, trying again")
		}
		select {
		case <-ctx.Done():
		case <-k.clock.After(k.pause()):
		}
	}
	return nil
}

// pause is the time between two looks: a small part of a token's life.
func (k *Keeper) pause() time.Duration {
	const part = 20
	return min(max(k.settings.Life/part, leastPause), mostPause)
}

// Token is what a machine that is launched now joins with, or the error for which it
// must not be launched: *Unusable.
func (k *Keeper) Token(ctx context.Context) (jointoken.Token, error) {
	select {
	case <-k.looked:
	case <-ctx.Done():
		return jointoken.Token{}, ctx.Err()
	case <-k.clock.After(firstLook):
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.unusable(); err != nil {
		return jointoken.Token{}, err
	}
	return k.current.value, nil
}

// Unusable says that there is no token with which a machine could join.
type Unusable struct {
	// Reason is in CamelCase, Message says what to do.
	Reason, Message string
}

// Error implements error.
func (u *Unusable) Error() string { return u.Message }

// Finding is why no machine can be launched, or nil. It is nil before the first look.
func (k *Keeper) Finding() *Unusable {
	select {
	case <-k.looked:
	default:
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unusable()
}

// unusable judges the present token. It needs the lock.
func (k *Keeper) unusable() *Unusable {
	advice := ""
	if k.problem != nil {
		advice = ": " + k.problem.Error()
	}
	switch {
	case k.current.ID == "":
		return &Unusable{v1beta1.ReasonBootstrapTokenMissing,
			"there is no bootstrap token with which machines could join, none is launched" + advice}
	case !k.current.Expires.IsZero() && k.left(k.current) < k.settings.Join:
		return &Unusable{v1beta1.ReasonBootstrapTokenExpiring, fmt.Sprintf(
			"the bootstrap token of %s ends at %s, and machines may take %s to join: "+
				"none is launched%s", k.current, k.current.Expires.UTC().Format(time.RFC3339), k.settings.Join, advice)}
	}
	return nil
}

// left is how long the API server will take a token. It needs the lock.
func (k *Keeper) left(t Token) time.Duration {
	return t.Expires.Sub(k.clock.Now().Add(k.ahead)) - granularity
}

// look brings everything up to date once.
func (k *Keeper) look(ctx context.Context) error {
	var found Token
	var err error
	switch k.settings.Mode {
	case Own:
		found, err = k.own(ctx)
	case Cluster:
		found, err = k.cluster(ctx)
	case Given:
		found, err = k.given(ctx)
	case None:
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var kept *unread
	if !errors.As(err, &kept) { // that the API server does not answer says nothing about the token
		k.current = found
	}
	k.problem = err
	left := time.Duration(0)
	switch {
	case k.current.ID == "":
	case k.current.Expires.IsZero():
		left = forever
	default:
		left = max(0, k.left(k.current))
	}
	k.meter.Left(left, k.late(left))
	return err
}

// late is by how long the renewal of a token is late that lives for a while yet. A token that
// others keep may be renewed until shortly before its end. Without a token nothing is launched,
// and that is told by itself.
func (k *Keeper) late(left time.Duration) time.Duration {
	due := othersDue
	if k.settings.Mode == Own {
		due = k.settings.Life / 2
	}
	if left == 0 {
		return 0
	}
	return max(0, due-left)
}

// forever is what a token that does not end is said to have left.
const forever = 100 * 365 * 24 * time.Hour

// unread says that the API server did not tell what there is.
type unread struct{ error }

// own reads nap's tokens, and makes a new one when the best has lived half of its life.
func (k *Keeper) own(ctx context.Context) (Token, error) {
	var best Token
	var free []corev1.Secret // where a new token can be
	for _, id := range ids() {
		s := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: namePrefix + id}}
		err := k.kube.Get(ctx, client.ObjectKeyFromObject(&s), &s)
		if err != nil && !apierrors.IsNotFound(err) {
			return Token{}, &unread{fmt.Errorf("reading secret %s/%s: %w; see docs/bootstrap-tokens.md for the permission",
				metav1.NamespaceSystem, s.Name, err)}
		}
		t, broken := Token{}, err
		if err == nil {
			t, broken = parse(&s)
		}
		if broken != nil || !t.Expires.IsZero() && k.remaining(t) <= 0 {
			free = append(free, s)
			continue
		}
		// One that was made endless by hand is left to the machines that have it.
		if t.Expires.After(best.Expires) {
			best = t
		}
	}
	if len(free) > 0 { // otherwise nothing can be made
		k.compareClocks(ctx)
	}
	if best.ID != "" && k.remaining(best) > k.settings.Life/2 || len(free) == 0 {
		return best, nil
	}
	made, err := k.make(ctx, &free[0])
	k.meter.Renewed(err == nil)
	if err != nil {
		return best, err
	}
	log.FromContext(ctx).Info("made a bootstrap token", "secret", made.String(), "expires", made.Expires)
	return made, nil
}

func (k *Keeper) remaining(t Token) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left(t)
}

// compareClocks asks the API server for the time: what it would create carries it.
// Without an answer the last comparison holds.
func (k *Keeper) compareClocks(ctx context.Context) {
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: namePrefix + "clock"}}
	before := k.clock.Now()
	if err := k.kube.Create(ctx, probe, client.DryRunAll); err != nil || probe.CreationTimestamp.IsZero() {
		return
	}
	ahead := probe.CreationTimestamp.Sub(before)
	if ahead.Abs() <= 2*granularity {
		ahead = 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ahead = ahead
}

// make puts a new token in the place of one that has ended, or returns the one that
// another leader has just put there.
func (k *Keeper) make(ctx context.Context, place *corev1.Secret) (Token, error) {
	if place.ResourceVersion != "" {
		err := k.kube.Delete(ctx, place, client.Preconditions{UID: &place.UID, ResourceVersion: &place.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) {
			return Token{}, fmt.Errorf("deleting secret %s/%s, whose token has ended: %w", place.Namespace, place.Name, err)
		}
	}
	k.mu.Lock()
	ends := k.clock.Now().Add(k.ahead + k.settings.Life)
	k.mu.Unlock()
	t := newToken(strings.TrimPrefix(place.Name, namePrefix), random())
	t.Expires = ends.UTC().Truncate(time.Second)
	err := k.kube.Create(ctx, t.object())
	if apierrors.IsAlreadyExists(err) { // another leader was faster
		var theirs corev1.Secret
		if err = k.kube.Get(ctx, client.ObjectKeyFromObject(place), &theirs); err == nil {
			return parse(&theirs)
		}
	}
	if err != nil {
		return Token{}, fmt.Errorf("creating secret %s/%s, the token of new machines: %w", place.Namespace, place.Name, err)
	}
	return t, nil
}

// random is the secret half of a token.
func random() string {
	const length = 16
	return strings.ToLower(rand.Text())[:length]
}

// cluster finds the token of others that lives longest.
func (k *Keeper) cluster(ctx context.Context) (Token, error) {
	var list corev1.SecretList
	if err := k.kube.List(ctx, &list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)}); err != nil {
		return Token{}, &unread{fmt.Errorf("listing the bootstrap tokens of namespace %s: %w; see docs/bootstrap-tokens.md for the permission",
			metav1.NamespaceSystem, err)}
	}
	var best Token
	for i := range list.Items {
		t, err := parse(&list.Items[i])
		if err != nil {
			continue
		}
		if t.Expires.IsZero() {
			return t, nil
		}
		if k.remaining(t) > 0 && t.Expires.After(best.Expires) {
			best = t
		}
	}
	if best.ID == "" {
		return best, fmt.Errorf("namespace %s has no Secret of type %s that lives; use --bootstrap-tokens=%s",
			metav1.NamespaceSystem, corev1.SecretTypeBootstrapToken, Own)
	}
	return best, nil
}

// given looks when the token of a setting ends. Where that may not be read, it is
// believed.
func (k *Keeper) given(ctx context.Context) (Token, error) {
	t, err := given(k.settings.Given)
	if err != nil {
		return Token{}, err
	}
	var s corev1.Secret
	err = k.kube.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: namePrefix + t.ID}, &s)
	switch {
	case apierrors.IsForbidden(err):
		return t, nil
	case apierrors.IsNotFound(err):
		return Token{}, fmt.Errorf("there is no %s, the API server does not know KUBELET_BOOTSTRAP_TOKEN; unset it, and nap makes its own", t)
	case err != nil:
		return Token{}, &unread{fmt.Errorf("reading %s: %w", t, err)}
	}
	found, err := parse(&s)
	if err == nil && !found.value.Equal(t.value) {
		err = fmt.Errorf("%s is another token than KUBELET_BOOTSTRAP_TOKEN; unset that, and nap makes its own", t)
	}
	if err != nil {
		return Token{}, err
	}
	return found, nil
}
