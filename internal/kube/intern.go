package kube

import (
	"maps"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// interner shares one record among all pods with the same content. It keeps none alive:
// a record goes with the last pod that has it.
type interner struct {
	writer keyWriter
	specs  records[fleet.PodSpec]
	// rules finds a spec with the same affinity and spread, by what readRules reads.
	rules records[fleet.PodSpec]
	// byKey finds specs that were written differently and mean the same.
	byKey    records[fleet.PodSpec]
	labels   records[fleet.Labels]
	refusals refusals
	// settings say how pods are read.
	settings Settings
}

func newInterner(settings Settings) *interner { return &interner{settings: settings} }

func (in *interner) spec(pod *corev1.Pod) *fleet.PodSpec {
	in.writer.buf = in.writer.buf[:0]
	end := in.writer.spec(pod)
	if s := in.specs.get(in.writer.buf); s != nil {
		return s
	}
	s := in.newSpec(pod, in.writer.buf[:end])
	if same := in.byKey.get([]byte(s.Key)); same != nil {
		s = same
	} else {
		in.byKey.put([]byte(s.Key), s)
	}
	in.specs.put(in.writer.buf, s)
	return s
}

// newSpec reads a pod. rulesKey is what readRules reads of it.
func (in *interner) newSpec(pod *corev1.Pod, rulesKey []byte) *fleet.PodSpec {
	if why := tooMuch(pod); why != "" {
		return readTooMuch(pod, why)
	}
	if like := in.rules.get(rulesKey); like != nil {
		return readSpecWith(pod, rulesOf(like))
	}
	rules := readRules(pod)
	s := readSpecWith(pod, rules)
	if rules.Invalid == "" {
		in.rules.put(rulesKey, s)
	}
	return s
}

// refused is a spec as that of a pod which no API server takes.
func (in *interner) refused(s *fleet.PodSpec, why string) *fleet.PodSpec {
	out := *s
	out.Invalid = why
	out.SetKey()
	if same := in.byKey.get([]byte(out.Key)); same != nil {
		return same
	}
	in.byKey.put([]byte(out.Key), &out)
	return &out
}

func (in *interner) labelSet(labels map[string]string) *fleet.Labels {
	in.writer.buf = in.writer.buf[:0]
	in.writer.stringMap(labels)
	if l := in.labels.get(in.writer.buf); l != nil {
		return l
	}
	l := &fleet.Labels{Key: string(in.writer.buf), Values: maps.Clone(labels)}
	in.labels.put(in.writer.buf, l)
	return l
}

// records finds records by their content for as long as something else holds them. The
// zero value is empty.
type records[T any] struct {
	byContent map[string]weak.Pointer[T]
	// sweepAt is the size at which records that are gone are looked for.
	sweepAt int
}

// sweepLeast is the least size at which records that are gone are looked for.
const sweepLeast = 1 << 10

// get returns the record with a content, or nil.
func (r *records[T]) get(content []byte) *T {
	return r.byContent[string(model.CompactKey(content))].Value()
}

func (r *records[T]) put(content []byte, record *T) {
	if r.byContent == nil {
		r.byContent, r.sweepAt = map[string]weak.Pointer[T]{}, sweepLeast
	}
	if len(r.byContent) >= r.sweepAt {
		live := make(map[string]weak.Pointer[T], sweepLeast) // a map gives no memory back
		for key, p := range r.byContent {
			if p.Value() != nil {
				live[key] = p
			}
		}
		r.byContent, r.sweepAt = live, max(sweepLeast, 2*len(live))
	}
	r.byContent[string(model.CompactKey(content))] = weak.Make(record)
}

// adopt returns the record under the key that another one has for it, which is the given
// one from now on where there was none.
func (r *records[T]) adopt(key string, record *T) *T {
	if same := r.byContent[key].Value(); same != nil {
		return same
	}
	r.put([]byte(key), record)
	return record
}

// all visits the records that are there, in no order.
func (r *records[T]) all(yield func(key string, record *T) bool) {
	for key, p := range r.byContent {
		if record := p.Value(); record != nil && !yield(key, record) {
			return
		}
	}
}
