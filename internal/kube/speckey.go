package kube

import (
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// converted returns a text that is equal for equal specs, whatever their pods
// looked like: every field of the spec but its Key is written, which a test
// checks.
func (w *keyWriter) converted(s *fleet.PodSpec) string {
	start := len(w.buf)
	r := &s.Requests
	for _, v := range [4]int64{r.CPU, r.Memory, r.Storage, r.Pods} {
		w.num(v)
	}
	w.num(int64(len(r.Extended)))
	for _, e := range r.Extended {
		w.str(e.Name)
		w.num(e.Value)
	}
	w.requirements(s.NodeRequirements)
	w.num(int64(len(s.NodeAlternatives)))
	for _, rs := range s.NodeAlternatives {
		w.requirements(rs)
	}
	w.num(int64(len(s.NodePreferences)))
	for i := range s.NodePreferences {
		w.num(int64(s.NodePreferences[i].Weight))
		w.requirements(s.NodePreferences[i].Requirements)
	}
	w.num(int64(len(s.Tolerations)))
	for _, t := range s.Tolerations {
		w.str(t.Key)
		w.str(t.Value)
		w.str(string(t.Effect))
		w.flag(t.Exists)
	}
	w.spreads(s.Spread)
	w.terms(s.Affinity)
	w.terms(s.AntiAffinity)
	w.num(int64(len(s.Preferences)))
	for i := range s.Preferences {
		w.num(int64(s.Preferences[i].Weight))
		w.flag(s.Preferences[i].Anti)
		w.term(&s.Preferences[i].Term)
	}
	w.num(int64(len(s.HostPorts)))
	for _, p := range s.HostPorts {
		w.str(p.IP)
		w.num(int64(p.Port))
		w.str(p.Protocol)
	}
	w.num(int64(s.Priority))
	w.flag(s.AvoidsPools)
	w.str(s.Invalid)
	key := string(w.buf[start:])
	w.buf = w.buf[:start]
	return key
}

func (w *keyWriter) requirements(rs model.Requirements) {
	w.num(int64(len(rs)))
	for i := range rs {
		w.str(rs[i].Key)
		w.str(string(rs[i].Operator))
		w.strs(rs[i].Values)
		w.num(int64(rs[i].MinValues))
	}
}

func (w *keyWriter) chosen(s *model.Selector) {
	w.flag(s != nil)
	if s != nil {
		w.requirements(s.Requirements)
	}
}

func (w *keyWriter) spreads(list []model.SpreadConstraint) {
	w.num(int64(len(list)))
	for i := range list {
		s := &list[i]
		w.str(s.TopologyKey)
		w.num(int64(s.MaxSkew))
		w.num(int64(s.MinDomains))
		w.chosen(s.Selector)
		w.flag(s.Hard)
		w.flag(s.HonorNodeAffinity)
		w.flag(s.HonorTaints)
	}
}

func (w *keyWriter) terms(list []fleet.Term) {
	w.num(int64(len(list)))
	for i := range list {
		w.term(&list[i])
	}
}

func (w *keyWriter) term(t *fleet.Term) {
	w.str(t.TopologyKey)
	w.chosen(t.Selector)
	w.strs(t.Namespaces)
	w.chosen(t.NamespaceSelector)
}
