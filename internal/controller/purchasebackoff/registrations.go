package purchasebackoff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// registrationPolicy is for machines that do not register as nodes. Two may fail by
// chance; the third stops purchases, and then one machine at a time probes.
func registrationPolicy() Policy {
	return Policy{
		Pauses: []time.Duration{0, 0, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour},
		Probes: 3,
	}
}

// registerWithin is the age, from its launch on, at which a machine that ends without
// having registered counts as one that could not. Karpenter gives machines up after 15
// minutes; what ends sooner was ended by something else, unless the machine said that
// it could not boot.
const registerWithin = 14 * time.Minute

// Registrations follow machines from their launch until they are nodes. The key is an
// AKSNodeClass with the version of its image and of Kubernetes: a fault in either
// keeps every machine from joining, whatever its size. It is safe for concurrent use.
type Registrations struct {
	clock clock.Clock
	// Breaker counts machines that did not register, by class, image version and
	// Kubernetes version.
	Breaker *Breaker

	mu sync.Mutex
	// machines are those that are not registered, by the name of their claim.
	machines map[string]*machine
	// classes are the AKSNodeClasses by name, at the last look; looked says that there was one.
	classes map[string]classFacts
	looked  bool
	// succeeded is when a machine last registered, by key.
	succeeded map[string]time.Time
}

// machine is one that has been asked for and is no node yet.
type machine struct {
	// key is what it is counted by, empty until there is a machine; class and pool are
	// the names of its AKSNodeClass and NodePool.
	key, class, pool string
	// made is when its claim was created, launched when there was a machine, zero before.
	made, launched time.Time
	// left is when its claim was deleted, zero before. Azure may take long to delete it.
	left time.Time
	// failed machines have been counted.
	failed bool
	// seen is whether its claim has been observed since it was created.
	seen bool
	// held machines wait until purchases resume, see Guard.
	held bool
}

// seenWithin is how long a claim may take from its creation until it is observed.
const seenWithin = 30 * time.Second

// classFacts are what new machines of a class get.
type classFacts struct {
	// keys has one key per version among the class's images.
	keys []string
	// generation is the circumstance of failures: who changes the class may have
	// removed the cause.
	generation string
	version    string
}

// NewRegistrations returns registrations without a past.
func NewRegistrations(clk clock.Clock) *Registrations {
	return &Registrations{
		clock: clk, Breaker: NewBreaker(registrationPolicy(), clk),
		machines: map[string]*machine{}, classes: map[string]classFacts{}, succeeded: map[string]time.Time{},
	}
}

// registrationKey names what machines have in common. image is the id of an image, of which
// only the version counts: the images of one class differ by architecture and
// generation, and are made together.
func registrationKey(class, image, kubernetes string) string {
	return fmt.Sprintf("AKSNodeClass %s, image version %s, Kubernetes %s", class, image[strings.LastIndex(image, "/")+1:], kubernetes)
}

// Look learns what has become of machines since the last look.
func (r *Registrations) Look(ctx context.Context, reader client.Reader) error {
	var classes v1beta1.AKSNodeClassList
	if err := reader.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing AKSNodeClasses: %w", err)
	}
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodeClaims: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learn(classes.Items)
	r.looked = true
	here := map[string]bool{} // of the machines that are followed
	for i := range claims.Items {
		if claim := &claims.Items[i]; r.follow(claim) {
			here[claim.Name] = true
		}
	}
	for name, m := range r.machines {
		if !here[name] && (m.seen || r.clock.Since(m.made) > seenWithin) {
			r.ended(name, m)
			delete(r.machines, name)
		}
	}
	return nil
}

// Looked reports whether Look has succeeded: before, it is not known which NodePools are
// paused.
func (r *Registrations) Looked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked
}

// following reports whether any machine is on its way.
func (r *Registrations) following() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.machines) > 0
}

func (r *Registrations) learn(classes []v1beta1.AKSNodeClass) {
	r.classes = make(map[string]classFacts, len(classes))
	for i := range classes {
		c := &classes[i]
		facts := classFacts{generation: fmt.Sprintf("%s/%d", c.UID, c.Generation)}
		if c.Status.KubernetesVersion != nil {
			facts.version = *c.Status.KubernetesVersion
		}
		for _, image := range c.Status.Images {
			if key := registrationKey(c.Name, image.ID, facts.version); !slices.Contains(facts.keys, key) {
				facts.keys = append(facts.keys, key)
			}
		}
		r.classes[c.Name] = facts
	}
}

// follow takes in one claim, and reports whether its machine is followed further.
func (r *Registrations) follow(c *karpv1.NodeClaim) bool {
	m := r.machines[c.Name]
	registered := kube.Condition(c, karpv1.ConditionTypeRegistered)
	if registered != nil && registered.IsTrue() {
		if m != nil {
			if m.key == "" && c.Spec.NodeClassRef != nil {
				m.key = r.keyOf(c)
			}
			r.succeeded[m.key] = r.clock.Now()
			r.Breaker.Succeeded(m.key)
			delete(r.machines, c.Name)
		}
		return false
	}
	if c.Spec.NodeClassRef == nil {
		return m != nil
	}
	if m == nil {
		m = r.add(c, c.CreationTimestamp.Time)
	}
	m.seen = true
	launched := kube.Condition(c, karpv1.ConditionTypeLaunched)
	if launched == nil || !launched.IsTrue() {
		return true
	}
	if m.key == "" {
		m.key, m.launched = r.keyOf(c), launched.LastTransitionTime.Time
	}
	if booted := kube.Condition(c, v1beta1.ConditionBooted); booted != nil && booted.IsFalse() {
		r.fail(c.Name, m, booted.Message)
		return true
	}
	if c.DeletionTimestamp != nil {
		m.left = c.DeletionTimestamp.Time
		r.ended(c.Name, m)
	}
	return true
}

// add begins to follow a claim.
func (r *Registrations) add(c *karpv1.NodeClaim, made time.Time) *machine {
	m := &machine{class: c.Spec.NodeClassRef.Name, pool: c.Labels[karpv1.NodePoolLabelKey], made: made}
	r.machines[c.Name] = m
	return m
}

// Bought says that a claim has just been created, before it is observed: it may be the
// one that probes.
func (r *Registrations) Bought(c *karpv1.NodeClaim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Spec.NodeClassRef != nil && r.machines[c.Name] == nil {
		r.add(c, r.clock.Now())
	}
}

// keyOf is what the machine of a claim is counted by. Where its image is not known, as
// with an AKS machine that AKS is still making, it is one that its class has now.
func (r *Registrations) keyOf(c *karpv1.NodeClaim) string {
	class := c.Spec.NodeClassRef.Name
	facts := r.classes[class]
	if c.Status.ImageID == "" && len(facts.keys) > 0 {
		return facts.keys[0]
	}
	return registrationKey(class, c.Status.ImageID, facts.version)
}

// ended is what a machine says that is given up without having registered.
func (r *Registrations) ended(name string, m *machine) {
	if m.left.IsZero() {
		m.left = r.clock.Now()
	}
	if age := m.left.Sub(m.launched); m.key != "" && age >= registerWithin {
		r.fail(name, m, fmt.Sprintf("its machine did not register within %s", age.Truncate(time.Second)))
	}
}

func (r *Registrations) fail(name string, m *machine, why string) {
	if m.failed {
		return
	}
	m.failed = true
	f := Failure{Purchase: name, Pool: m.pool, Why: fmt.Sprintf("NodeClaim %s: %s", name, why)}
	r.Breaker.Failed(m.key, f, m.made, r.circumstances(m.key))
}

func (r *Registrations) circumstances(key string) string {
	for _, facts := range r.classes {
		if slices.Contains(facts.keys, key) {
			return facts.generation
		}
	}
	return ""
}

// Ask says whether machines of a class may be bought, with the record that says so.
// Probe allows a single machine, and only while none is on its way.
func (r *Registrations) Ask(class string) (Verdict, Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ask(class)
}

func (r *Registrations) ask(class string) (Verdict, Record) {
	facts := r.classes[class]
	verdict, record := Closed, Record{}
	for _, key := range facts.keys {
		v, known := r.Breaker.Ask(key, facts.generation)
		if v == Probe && r.probing(class, &known) {
			v = Open
		}
		if v > verdict || record.Count < known.Count {
			verdict, record = max(v, verdict), known
		}
	}
	return verdict, record
}

// probing reports whether a machine is on its way that was asked for after the last
// failure.
func (r *Registrations) probing(class string, record *Record) bool {
	for _, m := range r.machines {
		if m.class == class && !m.failed && !m.held && m.made.After(record.Since) {
			return true
		}
	}
	return false
}

// AskPool is Ask for a NodePool. Where nothing is known of its class, as after a loss
// of everything that was written down, it heeds the condition NodeRegistrationHealthy
// that Karpenter keeps: while machines of the NodePool failed to register, they are
// bought one by one.
func (r *Registrations) AskPool(pool *karpv1.NodePool) (Verdict, Record) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return Closed, Record{}
	}
	verdict, record := r.Ask(ref.Name)
	if verdict != Closed || record.Count > 0 {
		return verdict, record
	}
	healthy := unhealthy(pool)
	if healthy == nil {
		return Closed, record
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.classes[ref.Name].keys {
		if r.succeeded[key].After(healthy.LastTransitionTime.Time) {
			return Closed, record
		}
	}
	record = Record{
		Key: "NodePool " + pool.Name, Since: healthy.LastTransitionTime.Time, Until: r.clock.Now(),
		Last: []Failure{{Pool: pool.Name, Why: healthy.Message}},
	}
	for _, m := range r.machines {
		if m.pool == pool.Name && !m.failed && !m.held {
			return Open, record
		}
	}
	return Probe, record
}

// unhealthy is the condition NodeRegistrationHealthy of a NodePool whose machines did
// not register, or nil.
func unhealthy(pool *karpv1.NodePool) *status.Condition {
	if c := kube.Condition(pool, karpv1.ConditionTypeNodeRegistrationHealthy); c.IsFalse() && c.Reason == ReasonRegistrationFailed {
		return c
	}
	return nil
}

// ReasonRegistrationFailed is Karpenter's reason of NodeRegistrationHealthy where
// machines did not register.
const ReasonRegistrationFailed = "RegistrationFailed"

// PausedPools are the NodePools from which nothing may be bought but to probe, by name,
// with the reason in words.
func (r *Registrations) PausedPools(pools map[string]*karpv1.NodePool) map[string]string {
	out := map[string]string{}
	for name, pool := range pools {
		if verdict, record := r.AskPool(pool); verdict != Closed {
			out[name] = Text(&record)
		}
	}
	return out
}

// Explains reports whether it is known why a machine did not become a node: its class
// does not register. Then it says nothing about the pods that it was bought for.
func (r *Registrations) Explains(claim string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.Breaker.Records() {
		if record.Count >= registrationPolicy().Probes && slices.ContainsFunc(record.Last, func(f Failure) bool { return f.Purchase == claim }) {
			return true
		}
	}
	return false
}

// Counted reports whether the machine of a claim is counted as one that did not become
// a node.
func (r *Registrations) Counted(claim string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.machines[claim]; m != nil {
		return m.failed
	}
	return slices.ContainsFunc(r.Breaker.Records(), func(record Record) bool {
		return slices.ContainsFunc(record.Last, func(f Failure) bool { return f.Purchase == claim })
	})
}

// Paused are the classes with which nothing is bought, or single machines only, with
// what is known.
func (r *Registrations) Paused() map[string]Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]Record{}
	for name, facts := range r.classes {
		for _, key := range facts.keys {
			if _, record := r.Breaker.Ask(key, facts.generation); r.Breaker.paused(&record) && record.Count > out[name].Count {
				out[name] = record
			}
		}
	}
	return out
}

// Text says in words why machines of a class are not bought, or one by one.
func Text(r *Record) string {
	last := ""
	if len(r.Last) > 0 {
		last = "; the last: " + r.Last[len(r.Last)-1].Why
	}
	if r.Count == 0 {
		return fmt.Sprintf("machines did not register as nodes and are bought one by one until one registers (%s)%s", r.Key, last)
	}
	return fmt.Sprintf("%s in a row did not register as nodes; nothing is bought before %s, then one machine at a time until one "+
		"registers (%s)%s", machines(r.Count), r.Until.UTC().Format(time.RFC3339), r.Key, last)
}

func machines(n int) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprintf("%d machines", n)
}
