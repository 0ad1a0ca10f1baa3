package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// AppendKey appends a text of what v points at, which is equal for two values of
// one type exactly when they hold the same: field by field, element by element,
// whatever the order of a map. It covers every field, also one that is added
// later, so a key that it writes forgets nothing.
//
// A nil list or map and an empty one have the same text, a nil pointer and one to
// a zero value do not. Precondition: v is made of booleans, numbers, strings,
// lists, maps with keys that are strings, pointers without cycles, and structs of
// these; AppendKey panics for anything else.
func AppendKey[T any](key []byte, v *T) []byte {
	return appendValue(key, reflect.ValueOf(v).Elem())
}

// longKey is from which length on the digest of a key stands for it.
const longKey = 1 << 10

// CompactKey returns a key, or its SHA-256 digest where the key is long: what is looked up
// by keys then keeps little of them. Nothing else has the same digest.
func CompactKey(key []byte) []byte {
	if len(key) <= longKey {
		return key
	}
	sum := sha256.Sum256(key)
	return sum[:]
}

func appendValue(key []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(key, 1)
		}
		return append(key, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(key, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(key, v.Uint())
	case reflect.Float32, reflect.Float64:
		return binary.BigEndian.AppendUint64(key, math.Float64bits(v.Float()))
	case reflect.String:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		return append(key, v.String()...)
	case reflect.Slice, reflect.Array:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		for i := range v.Len() {
			key = appendValue(key, v.Index(i))
		}
		return key
	case reflect.Map:
		return appendMap(key, v)
	case reflect.Pointer:
		if v.IsNil() {
			return append(key, 0)
		}
		return appendValue(append(key, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			key = appendValue(key, v.Field(i))
		}
		return key
	default:
		panic(fmt.Sprintf("no key can be made of a %s", v.Type()))
	}
}

// appendMap writes the entries in the order of their keys.
func appendMap(key []byte, v reflect.Value) []byte {
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	key = binary.AppendUvarint(key, uint64(len(names)))
	for _, name := range names {
		key = appendValue(appendValue(key, name), v.MapIndex(name))
	}
	return key
}
