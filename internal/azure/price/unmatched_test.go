package price

import (
	"slices"
	"testing"
)

func TestEntriesThatMatchNoSizeAreNamed(t *testing.T) {
	terms, err := ParseTerms([]byte(`
prices: [{size: standard_d4s_V5, onDemand: 0.1}, {size: Standard_Nonsense, onDemand: 0.1}]
discounts: [{sizes: "Standard_Q*", percent: 10}, {sizes: "standard_d*", percent: 10}]
reservations: [{size: Standard_Nosuch, count: 3, hourly: 0}, {size: Standard_D4S_v5, count: 1, hourly: 0}]
savingsPlans: [{name: team, hourly: 1, prices: {Standard_D4s_v5: 0.1, Standard_D4: 0.1}}]
perNode: [{name: agent, hourly: 0.02}, {name: licence, hourly: 0.02, sizes: "Standard_N*"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`prices[1].size "Standard_Nonsense"`, `discounts[0].sizes "Standard_Q*"`, `reservations[0].size "Standard_Nosuch"`,
		`savingsPlans[0].prices "Standard_D4"`, `perNode[1].sizes "Standard_N*"`,
	}
	if got := terms.Unmatched([]string{"Standard_D4s_v5", "Standard_E4s_v5"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
