package decisions

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"testing"
)

// recorded reads the file that `make decisions` writes.
func recorded(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ') // names have spaces
		if at < 0 {
			t.Fatalf("testdata/decisions.txt: line %q is not NAME HASH", lines.Text())
		}
		out[lines.Text()[:at]] = lines.Text()[at+1:]
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryCaseIsRecorded(t *testing.T) {
	want := recorded(t)
	for _, c := range All() {
		if want[c.Name] == "" {
			t.Errorf("case %s is not in testdata/decisions.txt: run make decisions", c.Name)
		}
		delete(want, c.Name)
	}
	for name := range want {
		t.Errorf("testdata/decisions.txt has %s, which is no case: run make decisions", name)
	}
}

func TestDecisionsStayTheSame(t *testing.T) {
	want := recorded(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, c := range All() {
		if !c.Small {
			continue
		}
		runtime.GOMAXPROCS(1 << (i % 3))
		text, err := c.Decide(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := Hash(text); got != want[c.Name] {
			t.Errorf("case %s: another decision, %s instead of %s; where that is meant, run make decisions and say in the "+
				"commit why; `go run ./bench/cmd/decisions -show %s` prints it in full", c.Name, got, want[c.Name], c.Name)
		}
	}
}
