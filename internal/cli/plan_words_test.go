package cli

import (
	"strings"
	"testing"
)

// Where one more workload has pods, "1 more workload" reads badly.
func TestLastWorkloadOfAListIsAnother(t *testing.T) {
	var pods []string
	table := &planTable{planReport: &planReport{owners: podOwners{}}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		pods = append(pods, "shop/"+name+"-0")
		table.owners["shop/"+name+"-0"] = "Deployment shop/" + name
	}
	if got := table.owned(pods); !strings.HasSuffix(got, "1 of shop/f, 1 of another workload") {
		t.Errorf("got %q", got)
	}
}
