package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// internLimit is how many templates are remembered. A cluster has far fewer at a
// time; when a table is full of old ones it starts afresh, which costs a second
// conversion and nothing else, since records are compared by content.
const internLimit = 1 << 16

// interner shares one record among all pods with the same content.
type interner struct {
	writer keyWriter
	specs  map[string]*fleet.PodSpec
	// rules hold what readRules made of pods, by what it read.
	rules map[string]*fleet.PodSpec
	// byKey finds specs that were written differently and mean the same.
	byKey  map[string]*fleet.PodSpec
	labels map[string]*fleet.Labels
	// settings say how pods are read.
	settings Settings
}

func newInterner(settings Settings) *interner {
	return &interner{
		settings: settings,
		specs:    map[string]*fleet.PodSpec{},
		rules:    map[string]*fleet.PodSpec{},
		byKey:    map[string]*fleet.PodSpec{},
		labels:   map[string]*fleet.Labels{},
	}
}

func (in *interner) spec(pod *corev1.Pod) *fleet.PodSpec {
	in.writer.buf = in.writer.buf[:0]
	end := in.writer.spec(pod)
	if s := in.specs[string(in.writer.buf)]; s != nil {
		return s
	}
	if len(in.specs) >= internLimit {
		clear(in.specs)
		clear(in.rules)
		clear(in.byKey)
	}
	rules := in.rules[string(in.writer.buf[:end])]
	if rules == nil {
		rules = readRules(pod)
		in.rules[string(in.writer.buf[:end])] = rules
	}
	s := readSpecWith(pod, rules)
	if same := in.byKey[s.Key]; same != nil {
		s = same
	}
	in.byKey[s.Key] = s
	in.specs[string(in.writer.buf)] = s
	return s
}

func (in *interner) labelSet(labels map[string]string) *fleet.Labels {
	in.writer.buf = in.writer.buf[:0]
	in.writer.stringMap(labels)
	if l := in.labels[string(in.writer.buf)]; l != nil {
		return l
	}
	if len(in.labels) >= internLimit {
		clear(in.labels)
	}
	l := &fleet.Labels{Key: string(in.writer.buf), Values: maps.Clone(labels)}
	in.labels[l.Key] = l
	return l
}
