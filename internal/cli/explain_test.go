package cli

import "testing"

func TestWhatIsSaidOfOnePodIsSaidOfSeveral(t *testing.T) {
	for one, several := range map[string]string{
		"gets a place": "get a place", "is promised to node n": "are promised to node n", "waits, but not for a node": "wait, but not for a node",
	} {
		if got := severally(1, one); got != one {
			t.Errorf("of one: %q, want %q", got, one)
		}
		if got := severally(2, one); got != several {
			t.Errorf("of two: %q, want %q", got, several)
		}
	}
}
