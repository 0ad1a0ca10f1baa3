package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/kube/admission"
	"github.com/nodeautoprovision/nap/internal/model"
)

// admitter says what an API server with nap's definitions would refuse of objects. It
// compiles the rules of a kind once. Any number of goroutines may use one.
type admitter struct {
	definitions []*apiextensionsv1.CustomResourceDefinition
	mu          sync.Mutex
	rules       map[schema.GroupVersionKind]*admission.Rules // those compiled so far; mu guards it
}

func newAdmitter() (*admitter, error) {
	definitions, err := crds.All()
	return &admitter{definitions: definitions, rules: map[schema.GroupVersionKind]*admission.Rules{}}, err
}

// check is what would be refused of an object in JSON, with the one that it takes the place of,
// nil for none. Kinds without a definition pass.
func (a *admitter) check(kind schema.GroupVersionKind, text, before []byte) []error {
	rules, err := a.rulesOf(kind)
	switch {
	case err != nil:
		return []error{err}
	case rules == nil:
		return nil
	case before != nil:
		return rules.CheckUpdate(text, before)
	}
	return rules.Check(text)
}

// rulesOf are the rules of a kind, nil if it has no definition.
func (a *admitter) rulesOf(kind schema.GroupVersionKind) (*admission.Rules, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if rules := a.rules[kind]; rules != nil {
		return rules, nil
	}
	i := slices.IndexFunc(a.definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind
	})
	if i < 0 {
		return nil, nil //nolint:nilnil // most kinds have none
	}
	rules, err := admission.Compile(a.definitions[i], kind.Version)
	if err != nil {
		return nil, err
	}
	a.rules[kind] = rules
	return rules, nil
}

// admitted is what an API server with nap's definitions would refuse of the NodePools
// and AKSNodeClasses: with fields that it does not know, a machine would not be what
// its file says. Before are the NodePools that they take the place of, by name: some of their
// fields never change.
func admitted(manifests []kube.Manifest, before map[string]*v1.NodePool) error {
	a, err := newAdmitter()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range manifests {
		kind := m.Object.GetObjectKind().GroupVersionKind()
		object, err := json.Marshal(m.Object)
		var old []byte
		if np := before[m.Object.GetName()]; err == nil && np != nil && kind.Kind == nodePoolKind {
			old, err = json.Marshal(np)
		}
		if err == nil {
			err = errors.Join(a.check(kind, object, old)...)
		}
		for _, unknown := range m.Ignored {
			err = errors.Join(err, errors.New(unknown))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %s: %w", m.Source, kind.Kind, m.Object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// admit refuses the objects of files that an API server would refuse, so that nothing is
// planned which cannot be applied: by the schema and the rules of the definitions that nap
// ships, with their defaults. That holds for fields which they do not have, too: nothing would
// be what such a file says. What has been said of an object is not said again.
func (p *planInput) admit(builtIn bool) {
	a, err := newAdmitter()
	if err != nil {
		p.refuse(err)
		return
	}
	classes := map[string]bool{} // AKSNodeClasses that are refused
	for _, u := range p.unread {
		classes[u.Name] = classes[u.Name] || u.Kind.Kind == nodeClassKind
		problems := a.problems(u.Kind, u.Name, u.Text, nil)
		if !a.knows(u.Kind) || len(problems) == 0 { // it says more of the version, and of what no schema tells
			p.problems = append(p.problems, u)
			problems = []error{errors.Unwrap(u)}
		} else {
			p.refuse(located(u.Source, errors.Join(problems...)))
		}
		if meansNodePool(u.Kind.Kind) {
			p.refusedPools = append(p.refusedPools, refusedPool{legible(u), whyRefused(u.Name, problems)})
		}
	}
	var kept []kube.Manifest
	for i, problems := range a.problemsOf(p.manifests, builtIn) {
		m := p.manifests[i]
		if len(problems) == 0 {
			kept = append(kept, m)
			continue
		}
		p.refuse(located(m.Source, errors.Join(problems...)))
		if np, is := m.Object.(*v1.NodePool); is {
			p.refusedPools = append(p.refusedPools, refusedPool{np, whyRefused(np.Name, problems)})
		} else if kindOf(m.Object) == nodeClassKind {
			classes[m.Object.GetName()] = true
		}
	}
	if builtIn { // another catalogue has no node classes
		kept = withoutPoolsOf(classes, kept, p)
	}
	p.manifests = kept
}

// withoutPoolsOf leaves out the NodePools of AKSNodeClasses that were refused, unless the cluster has
// such a class: with another one they would buy other machines.
func withoutPoolsOf(refused map[string]bool, manifests []kube.Manifest, p *planInput) []kube.Manifest {
	return slices.DeleteFunc(manifests, func(m kube.Manifest) bool {
		np, is := m.Object.(*v1.NodePool)
		if !is || np.Spec.Template.Spec.NodeClassRef == nil {
			return false
		}
		class := np.Spec.Template.Spec.NodeClassRef.Name
		if !refused[class] || p.classes[class] != nil {
			return false
		}
		p.refusedPools = append(p.refusedPools, refusedPool{np, "its AKSNodeClass " + class + " is refused, see above"})
		return true
	})
}

// problemsOf is what is wrong with each of the objects, several of which are checked at the
// same time.
func (a *admitter) problemsOf(manifests []kube.Manifest, builtIn bool) [][]error {
	problems := make([][]error, len(manifests))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range manifests {
		g.Go(func() error {
			m := &manifests[i]
			problems[i] = checkTyped(m, builtIn)
			if m.Text != nil {
				problems[i] = a.problems(m.Object.GetObjectKind().GroupVersionKind(), m.Object.GetName(), m.Text, problems[i])
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	return problems
}

// checkTyped is what no definition says is wrong with an object, or what nap itself says
// of NodePools and NodeOverlays.
func checkTyped(m *kube.Manifest, builtIn bool) []error {
	switch o := m.Object.(type) {
	case *schedulingv1.PriorityClass:
		return checkPriorityClass(o)
	case *policyv1.PodDisruptionBudget:
		return checkBudget(o, m.Ignored)
	case *v1.NodePool:
		if builtIn {
			return checkNodePool(o)
		}
	case *v1alpha1.NodeOverlay:
		if builtIn {
			return checkOverlay(o)
		}
	}
	return nil
}

// nodePoolKind is the kind of NodePools.
const nodePoolKind = "NodePool"

// meansNodePool reports whether a kind, as it is written in a file, is that of NodePools or
// would be but for a typing error.
func meansNodePool(kind string) bool {
	return model.Alike(kind, []string{nodePoolKind}) != ""
}

// problems adds what would be refused of an object to what has been said of it.
func (a *admitter) problems(kind schema.GroupVersionKind, name string, text []byte, problems []error) []error {
	said := fmt.Sprint(problems)
	for _, err := range a.check(kind, text, nil) {
		if wrong, is := err.(*field.Error); is && //nolint:errorlint // the rules wrap nothing
			(strings.Contains(said, " "+wrong.Field+":") || strings.Contains(said, " "+wrong.Field+"[")) { // of it, or of its items
			continue
		}
		problems = append(problems, fmt.Errorf("%s %s: %s", kind.Kind, name, strings.Join(strings.Fields(err.Error()), " ")))
	}
	return problems
}

// knows reports whether there is a definition of a kind in this version.
func (a *admitter) knows(kind schema.GroupVersionKind) bool {
	rules, err := a.rulesOf(kind)
	return rules != nil && err == nil
}

// whyRefused is what is wrong with a NodePool, in one line.
func whyRefused(name string, problems []error) string {
	why := strings.TrimPrefix(strings.TrimPrefix(problems[0].Error(), nodePoolKind+" "), name+": ")
	if more := len(problems) - 1; more > 0 {
		why += fmt.Sprintf("; and %s", plural(more, "more fault"))
	}
	return why
}

// legible is as much of a NodePool that could not be read as tells which pods it would take.
func legible(u *kube.Unread) *v1.NodePool {
	var given struct {
		Spec struct {
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					Requirements []v1.NodeSelectorRequirementWithMinValues
					Taints       []corev1.Taint
				}
			}
		}
	}
	_ = json.Unmarshal(u.Text, &given) // what cannot be read is left out
	pool, template := &v1.NodePool{}, &given.Spec.Template
	pool.Name, pool.Spec.Template.Labels = u.Name, template.Metadata.Labels
	pool.Spec.Template.Spec.Requirements, pool.Spec.Template.Spec.Taints = template.Spec.Requirements, template.Spec.Taints
	return pool
}

// refusedPool is a NodePool which the API server would refuse, and why.
type refusedPool struct {
	pool *v1.NodePool
	why  string
}

// keepRefusedPools adds the NodePools which were refused as such that buy nothing, so that
// they are the reason for pods which only they would take. One that the cluster has under
// that name stays as it is there.
func (p *planInput) keepRefusedPools() {
	for _, r := range p.refusedPools {
		if r.pool.Name == "" || p.pools[r.pool.Name] != nil {
			continue
		}
		record := kube.Pool(r.pool)
		record.Invalid = "it is refused: " + r.why
		p.store.Put(record)
	}
}

// saidOf reports whether the problems of the input tell of a NodePool already.
func (p *planInput) saidOf(pool string) bool {
	return slices.ContainsFunc(p.refusedPools, func(r refusedPool) bool { return r.pool.Name == pool })
}

// highestPriority is the highest value of a PriorityClass that is not Kubernetes' own
// (k8s.io/kubernetes/pkg/apis/scheduling).
const highestPriority = 1_000_000_000

// checkPriorityClass is what an API server would refuse of a PriorityClass.
func checkPriorityClass(class *schedulingv1.PriorityClass) []error {
	var problems []error
	say := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("PriorityClass %s: %s: %s", class.Name, field, fmt.Sprintf(format, args...)))
	}
	own := class.Name == "system-node-critical" || class.Name == "system-cluster-critical"
	if strings.HasPrefix(class.Name, "system-") && !own {
		say("metadata.name", "names that begin with system- are for Kubernetes' own PriorityClasses")
	}
	if class.Value > highestPriority && !own {
		say("value", "got %d, allowed: up to %d", class.Value, highestPriority)
	}
	switch policy := class.PreemptionPolicy; {
	case policy == nil, *policy == corev1.PreemptNever, *policy == corev1.PreemptLowerPriority:
	default:
		say("preemptionPolicy", "got %q, allowed: %s, %s", *policy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	return problems
}
