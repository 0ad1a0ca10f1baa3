package fleet

import "maps"

// table is a map whose snapshots cost nothing until the next write, which then
// copies the map once.
type table[K comparable, V any] struct {
	rows   map[K]V
	shared bool
}

func newTable[K comparable, V any]() table[K, V] { return table[K, V]{rows: map[K]V{}} }

func (t *table[K, V]) own() {
	if t.shared {
		t.rows, t.shared = maps.Clone(t.rows), false
	}
}

func (t *table[K, V]) put(k K, v V) {
	t.own()
	t.rows[k] = v
}

func (t *table[K, V]) remove(k K) bool {
	if _, ok := t.rows[k]; !ok {
		return false
	}
	t.own()
	delete(t.rows, k)
	return true
}

// share returns the rows, which the table will not write to again.
func (t *table[K, V]) share() map[K]V {
	t.shared = true
	return t.rows
}
