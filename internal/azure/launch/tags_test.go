package launch

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

func TestUserTagsNeitherReplaceReservedTagsNorRepeat(t *testing.T) {
	c := &config.Config{ClusterName: "c", AdditionalTags: map[string]string{"Team": "all", "cost": "1", "COMPUTE.aks.billing": "windows"}}
	class := &nodeclass.NodeClass{Tags: map[string]string{
		"team": "blue", "a/b": "c", "Karpenter.azure.com/cluster": "stolen",
		"karpenter.sh/nodepool": "stolen", "karpenter.azure.com/aksmachine_nodeclaim": "stolen",
	}}
	want := map[string]string{"team": "blue", "cost": "1", "a_b": "c", TagCluster: "c", tagBilling: "linux"}
	if got := TagsOf(c, NodeSpec{Class: class}); !maps.Equal(got, want) {
		t.Errorf("of a claim on its own: %v\nwant %v", got, want)
	}
	want[TagPool] = "general"
	if got := TagsOf(c, NodeSpec{Class: class, Pool: "general"}); !maps.Equal(got, want) {
		t.Errorf("of a pool's claim: %v\nwant %v", got, want)
	}
}

func TestTagsInvalidInAzureAreNamed(t *testing.T) {
	many := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("key-%d", i)] = "v"
		}
		return out
	}
	for name, c := range map[string]struct {
		tags map[string]string
		want string
	}{
		"none":          {nil, ""},
		"as many as go": {many(45), ""},
		"one more":      {many(46), "are 51 with nap's own, and Azure takes 50; remove 1"},
		"no name":       {map[string]string{"": "v"}, "a key without a name"},
		"nap's own": {map[string]string{"Karpenter.sh/NodePool": "v"},
			"spec.tags[Karpenter.sh/NodePool] is what nap finds its machines by"},
		"one name, twice": {map[string]string{"A/b": "v", "a_B": "w"}, "spec.tags[A/b] and spec.tags[a_B] are one name to Azure"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &config.Config{ClusterName: "c", AdditionalTags: map[string]string{"cost": "1"}}
			err := CheckTags(config, &nodeclass.NodeClass{Tags: c.tags})
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrTags) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestOwnTagsAreKnownInAnyCase(t *testing.T) {
	cluster, team := "c", "web"
	got := Values(map[string]*string{"KARPENTER.azure.com_cluster": &cluster, "Team": &team})
	if want := map[string]string{TagCluster: "c", "Team": "web"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
