package objects

import (
	"strings"
	"testing"
	"time"
)

func TestTableSaysHowFiguresGrow(t *testing.T) {
	var all []*Figures
	for _, n := range []int{500, 1000, 2000} {
		all = append(all, &Figures{
			Size: SizeOf(n), Engine: "nap", FirstClaim: time.Duration(n) * time.Millisecond, StartCPU: time.Second,
			Memory: int64(n) * int64(n), DecisionCPU: time.Duration(n) * time.Millisecond,
		})
	}
	var b strings.Builder
	if err := WriteTable(&b, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 1000  | 10000 | 60 ", "none in 5m0s", "| nap    | 1.00 ", "| 0.00 ", "| 2.00   | 1.00 "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
}

func TestNodesAreOfNodePoolsThatExist(t *testing.T) {
	for _, nodes := range []int{10, 500, 5000, 20000} {
		if s := SizeOf(nodes); s.Pools < 1 || s.Pools > 300 || s.Pods != 10*nodes {
			t.Errorf("%d nodes: %+v", nodes, s)
		}
	}
}
