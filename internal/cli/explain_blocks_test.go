package cli

import (
	"strings"
	"testing"
)

// The second change without the first one reads as if a line were lost.
func TestLongCommandLeavesItsChangeBehind(t *testing.T) {
	long := block{lines: []string{"  1. first", "command", "command", "command"}, head: 1}
	short := block{lines: []string{"  2. second", "command"}, head: 1}
	for most, want := range map[int]string{ // the last line says how many more there are
		7: "verdict|  1. first|command|command|command|  2. second|command",
		6: "verdict|  1. first|command|command|command",
		5: "verdict|  1. first|  2. second|command",
		3: "verdict|  1. first",
	} {
		lines, hidden := flatten([]block{{lines: []string{"verdict"}}, long, short}, most)
		if got := strings.Join(lines, "|"); got != want || hidden != 7-len(lines) {
			t.Errorf("in %d lines: %q, %d hidden, want %q", most, got, hidden, want)
		}
	}
}
