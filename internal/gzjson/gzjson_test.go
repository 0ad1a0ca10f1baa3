package gzjson

import (
	"maps"
	"strings"
	"testing"
)

func TestWhatIsPackedIsRead(t *testing.T) {
	want := map[string]string{"a": strings.Repeat("x", 10_000), "b": "ü"}
	data, err := Pack(want)
	if err != nil || len(data) > 1000 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	got := map[string]string{}
	if err := Unpack(data, &got, 1<<20); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := Unpack(data, &got, 5000); err == nil {
		t.Error("10,000 bytes are read, though 5,000 are allowed")
	}
	for _, broken := range [][]byte{nil, []byte("no gzip"), data[:len(data)/2]} {
		if err := Unpack(broken, &got, 1<<20); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
	if _, err := Pack(func() {}); err == nil {
		t.Error("a function is packed")
	}
}
