package cli

import (
	"slices"
	"testing"
)

func TestWrapKeepsWordsWithinColumns(t *testing.T) {
	got := wrap("one two three four verylongwordindeed five", 9)
	if want := []string{"one two", "  three", "  four", "  verylongwordindeed", "  five"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := clip("0123456789", 8); got != "01234..." {
		t.Errorf("got %q", got)
	}
}
