package feasible

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// catalog is a model.Catalog with its labels numbered, as far as some pool can buy of
// it. It exists while a space is compiled.
type catalog struct {
	// types are those of the model.Catalog, by the same index.
	types []catalogType
	// sets says, per key, whether the cloud decides the label: such a label is
	// what the type says, and a pool cannot make it up.
	sets []bool
	// count is how many offerings the types have that some pool can buy.
	count int
	// offerings and cells are storage for the types yet to be compiled.
	offerings []catalogOffering
	cells     []int32
}

// catalogType is an instance type of a catalog.
type catalogType struct {
	// unwanted types are malformed, or no pool can buy them. The other fields are valid
	// for wanted ones only.
	unwanted bool
	// allocatable is what the kubelet offers to pods, daemons included; capacity is the
	// size of the machine. Both are vectors of the space.
	allocatable, capacity []int64
	// open are the labels of which the buyer picks the value.
	open []openKey
	// offerings are those of the type, by the same index.
	offerings []catalogOffering
}

// catalogOffering is an offering of a catalogType.
type catalogOffering struct {
	// invalid offerings are malformed; the other fields are valid for valid ones only.
	invalid bool
	// price is per hour.
	price model.Money
	// values are the numbers of its labels by key, [Absent] where the cloud sets none.
	values []int32
	// decided are those open labels of its type of which the offering decides the value: the
	// buyer has no choice there.
	decided []int
}

// catalogCompiler reads one catalogue after the other.
type catalogCompiler struct {
	// dims are those of the vectors.
	dims *Dimensions
	// labels numbers the labels' values, and grows by those of the catalogues.
	labels *labelCompiler
	// rejected are the malformed instance types and offerings so far.
	rejected []model.Rejection
}

// compile reads what the given pools, which are distinct buyers, may buy of a catalogue.
func (k *catalogCompiler) compile(src *model.Catalog, pools []*model.Pool) *catalog {
	x := &k.labels.labels
	cat := &catalog{types: make([]catalogType, len(src.InstanceTypes)), sets: make([]bool, len(x.keys))}
	for _, key := range slices.Concat(noderules.CloudKeys(), src.LabelKeys) {
		if n, ok := x.index[key]; ok {
			cat.sets[n] = true
		}
	}
	k.checkTypes(cat, src, pools)
	wanted := 0
	for i := range cat.types {
		if !cat.types[i].unwanted {
			wanted++
			cat.count += len(src.InstanceTypes[i].Offerings)
		}
	}
	cat.offerings, cat.cells = make([]catalogOffering, cat.count), make([]int32, cat.count*len(x.keys))
	count := k.dims.Count
	vectors := make([]int64, 2*wanted*count)
	vector := func() []int64 {
		v := vectors[:count:count]
		vectors = vectors[count:]
		return v
	}
	base := make([]int32, len(x.keys))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		if ct.unwanted {
			continue
		}
		ct.capacity, ct.allocatable = vector(), vector()
		k.dims.layCapacity(ct.capacity, t.Capacity, t.VolumeSlots)
		k.dims.layCapacity(ct.allocatable, t.Allocatable(), t.VolumeSlots)
		k.compileOfferings(ct, t, cat, base)
	}
	return cat
}

// checkTypes rejects what is malformed and finds the types that no pool can buy,
// which are most of them as a rule.
func (k *catalogCompiler) checkTypes(cat *catalog, src *model.Catalog, pools []*model.Pool) {
	seen := make(map[string]bool, len(src.InstanceTypes))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		err := validate.InstanceType(t, seen)
		seen[t.Name] = true
		if err != nil {
			ct.unwanted = true
			k.rejected = append(k.rejected, model.Rejection{Kind: "InstanceType", Name: t.Name, Message: err.Error()})
			continue
		}
		if !slices.ContainsFunc(pools, func(p *model.Pool) bool { return mayBuy(p, t) }) {
			ct.unwanted = true
			k.noteKeys(cat, t)
			for o := range t.Offerings {
				k.sound(t, &t.Offerings[o])
			}
		}
	}
}

// sound reports whether an offering is well formed, and rejects it if not.
func (k *catalogCompiler) sound(t *model.InstanceType, o *model.Offering) bool {
	err := validate.Offering(o)
	if err != nil {
		name := fmt.Sprintf("%s in %q (%s)", t.Name, o.Zone, o.CapacityType)
		k.rejected = append(k.rejected, model.Rejection{Kind: "Offering", Name: name, Message: err.Error()})
	}
	return err == nil
}

// distinctBuyers leaves out pools of which it is clear that another one may buy the same types.
// Most of many pools differ in labels of their own and in taints alone. The texts say what
// tells the others apart.
func distinctBuyers(src *model.Catalog, pools []*model.Pool) (out []*model.Pool, texts []string) {
	tells := map[string]bool{model.LabelInstanceType: true, model.LabelZone: false, model.LabelCapacityType: false}
	seen, text := map[string]bool{}, []byte(nil)
	for _, pool := range pools {
		text = text[:0]
		for i := range pool.Requirements {
			r := &pool.Requirements[i]
			tell, known := tells[r.Key]
			if !known {
				for t := 0; t < len(src.InstanceTypes) && !tell; t++ {
					_, tell = src.InstanceTypes[t].Labels[r.Key]
				}
				tells[r.Key] = tell
			}
			if tell {
				text = fmt.Appendf(text, "%q %s %q\n", r.Key, r.Operator, r.Values)
			}
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			out, texts = append(out, pool), append(texts, string(text))
		}
	}
	return out, texts
}

// mayBuy reports whether a type's own labels meet a pool's requirements.
func mayBuy(pool *model.Pool, t *model.InstanceType) bool {
	for i := range pool.Requirements {
		r := &pool.Requirements[i]
		switch r.Key {
		case model.LabelZone, model.LabelCapacityType:
			continue // what an offering says
		case model.LabelInstanceType:
			if r.Matches(t.Name, true) {
				continue
			}
			return false
		}
		value, ok := t.Labels[r.Key]
		if !ok || r.Matches(value, true) {
			continue
		}
		if _, open := t.Choices[r.Key]; !open && !anyOffering(t, r.Key) {
			return false
		}
	}
	return true
}

// anyOffering reports whether an offering of the type has the label.
func anyOffering(t *model.InstanceType, key string) bool {
	for o := range t.Offerings {
		if _, ok := t.Offerings[o].Labels[key]; ok {
			return true
		}
	}
	return false
}

// noteKeys notes the labels of a type that no pool can buy: although no option carries
// them, the cloud decides them, so that no pool can make them up.
func (k *catalogCompiler) noteKeys(cat *catalog, t *model.InstanceType) {
	for n, key := range k.labels.labels.keys {
		if cat.sets[n] || key == model.LabelNodePool || key == model.LabelHostname {
			continue
		}
		_, fixed := t.Labels[key]
		_, open := t.Choices[key]
		cat.sets[n] = fixed || open || anyOffering(t, key)
	}
}

// onlyPlace reports whether an offering's labels say no more than its zone and
// capacity type, as most do.
func onlyPlace(o *model.Offering) bool {
	n := 0
	if v, ok := o.Labels[model.LabelZone]; ok && v == o.Zone && v != "" {
		n++
	}
	if v, ok := o.Labels[model.LabelCapacityType]; ok && v == string(o.CapacityType) && v != "" {
		n++
	}
	return n == len(o.Labels)
}

// compileOfferings reads a type's offerings; base is scratch for the labels of the type.
func (k *catalogCompiler) compileOfferings(ct *catalogType, t *model.InstanceType, cat *catalog, base []int32) {
	x := &k.labels.labels
	k.compileTypeLabels(ct, t, cat, base)
	n := len(t.Offerings)
	ct.offerings, cat.offerings = cat.offerings[:n:n], cat.offerings[n:]
	for o := range t.Offerings {
		src, co := &t.Offerings[o], &ct.offerings[o]
		if !k.sound(t, src) {
			co.invalid = true
			continue
		}
		co.price = src.Price
		co.values, cat.cells = cat.cells[:len(base):len(base)], cat.cells[len(base):]
		copy(co.values, base)
		if src.Zone != "" {
			key := x.index[model.LabelZone]
			co.values[key] = x.dicts[key].id(src.Zone)
		}
		if src.CapacityType != "" {
			key := x.index[model.LabelCapacityType]
			co.values[key] = x.dicts[key].id(string(src.CapacityType))
		}
		if onlyPlace(src) {
			continue
		}
		for name, v := range src.Labels { // every key has a dictionary of its own: order does not matter
			if key, ok := x.index[name]; ok {
				co.values[key] = x.dicts[key].id(v)
				cat.sets[key], x.varies[key] = true, true
				if slices.ContainsFunc(ct.open, func(open openKey) bool { return open.key == key }) {
					co.decided = append(co.decided, key)
				}
			}
		}
	}
}

// compileTypeLabels writes the labels that all offerings of a type share into base, and
// collects the labels of which the buyer picks the value.
func (k *catalogCompiler) compileTypeLabels(ct *catalogType, t *model.InstanceType, cat *catalog, base []int32) {
	x := &k.labels.labels
	for key, name := range x.keys {
		base[key] = Absent
		if name == model.LabelInstanceType {
			base[key] = x.dicts[key].id(t.Name)
		} else if v, ok := t.Labels[name]; ok {
			base[key] = x.dicts[key].id(v)
			cat.sets[key] = true
		}
		if values, ok := t.Choices[name]; ok {
			cat.sets[key] = true
			o := openKey{key: key}
			for _, v := range values {
				o.values = append(o.values, x.dicts[key].id(v))
			}
			ct.open = append(ct.open, o)
			x.picked[key] = true
			x.varies[key] = x.varies[key] || len(o.values) > 1
		}
	}
}
