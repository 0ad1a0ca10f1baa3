package mask

// Value returns an object of JSON, as package encoding/json reads one, without the secrets
// in it. It is made of new maps and lists.
func Value(object any) any { return of(plain, object) }

// of is a value whose name is of a kind.
func of(k kind, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, field := range value {
			out[name] = of(fieldKind(k, name, value), field)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = of(k, value[i])
		}
		return out
	case string:
		switch {
		case k == address:
			return Address(value)
		case k == plain || noSecret(value):
			return Text(value)
		}
		return Mask
	case bool, nil:
		return value
	}
	if k == plain || k == address {
		return value
	}
	return Mask
}

// fieldKind is the kind of a field of an object whose name is of kind k. A field value has
// what the object's name says, or the field name beside it.
func fieldKind(k kind, name string, object map[string]any) kind {
	if name != "value" {
		return kindOf(name)
	}
	if beside, ok := object["name"].(string); ok && kindOf(beside) != plain {
		return kindOf(beside)
	}
	return k
}
