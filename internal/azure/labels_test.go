package azure

import "testing"

func TestClusterLabelIsValidLabelValue(t *testing.T) {
	long := "MC_a-very-long-resource-group-name-that-goes-on-and-on-and-on-(cluster)_eastus"
	for group, want := range map[string]string{
		"MC_nap_nap_eastus": "MC_nap_nap_eastus",
		"MC_(a)":            "MC_-a-z",
		"group_":            "group_z",
		long:                "MC_a-very-long-resource-group-name-that-goes-on-and-on-and-on-z",
	} {
		got := clusterLabel(group)
		if got != want || len(got) > 63 {
			t.Errorf("%s becomes %s (%d characters), want %s", group, got, len(got), want)
		}
	}
}
