package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// scales are the entries of virtualMachinesProfile.scale: a list, or one of them.
type scales []struct {
	Size  string `json:"size"`
	Count int64  `json:"count"`
	Max   int64  `json:"maxCount"`
}

// UnmarshalJSON reads a list, or its one entry.
func (s *scales) UnmarshalJSON(text []byte) error {
	type plain scales
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	return json.Unmarshal(text, (*plain)(s))
}

// UnmarshalJSON reads an agent pool as a cluster lists it, or the resource itself, which has
// its fields in properties.
func (p *AgentPool) UnmarshalJSON(text []byte) error {
	type plain AgentPool
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	if properties, is := whole["properties"].(map[string]any); is {
		properties["name"] = whole["name"]
		whole = properties
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(text, (*plain)(p)), json.Unmarshal(text, &p.Class)); err != nil {
		return err
	}
	p.fields = map[string]any{}
	leaves("", whole, p.fields)
	return nil
}

// leaves collects the values of a document by their path. Maps whose keys are the user's,
// and those that become a part of an AKSNodeClass, are values themselves.
func leaves(path string, v any, out map[string]any) {
	m, is := v.(map[string]any)
	whole := []string{"kubeletconfig", "linuxosconfig", "localdnsprofile", "nodelabels", "status", "tags", "virtualmachinesprofile"}
	if !is || slices.Contains(whole, strings.ToLower(path)) {
		out[path] = v
		return
	}
	for name, part := range m {
		leaves(strings.TrimPrefix(path+"."+name, "."), part, out)
	}
}

// input is everything that ReadCluster takes: a cluster, its resource, an agent pool, or a
// list of them as Azure answers it.
type input struct {
	Cluster
	Properties struct {
		Cluster
		Size string `json:"vmSize"`
	} `json:"properties"`
	Value []AgentPool `json:"value"`
	Size  string      `json:"vmSize"`
	VMs   any         `json:"virtualMachinesProfile"`
}

// ReadCluster reads a cluster with its agent pools, or agent pools alone, as "az aks show",
// "az aks nodepool list" and "az aks nodepool show" print them. region is that of the
// cluster where the input does not tell it, and overrides what it tells.
func ReadCluster(text []byte, region string) (*Cluster, error) {
	const wanted = `give what "az aks show -o json" or "az aks nodepool list -o json" prints`
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, errors.New("is empty: " + wanted)
	}
	c, err := readPools(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", plainly(err), wanted)
	}
	if len(c.Pools) == 0 {
		return nil, errors.New("has no agentPoolProfiles: " + wanted)
	}
	c.Location = strings.ToLower(strings.ReplaceAll(c.Location, " ", ""))
	if region != "" {
		c.Location = region
	}
	if c.Location == "" {
		return nil, errors.New(`does not tell the region of the agent pools: give --region, or what "az aks show -o json" prints`)
	}
	return c, nil
}

// readPools finds the agent pools of a document.
func readPools(text []byte) (*Cluster, error) {
	if text[0] == '[' {
		var clusters []input
		if json.Unmarshal(text, &clusters) == nil && len(clusters) > 0 && len(clusters[0].Pools) > 0 {
			return nil, errors.New("is a list of clusters, must be one of them")
		}
		c := &Cluster{PoolsAlone: true}
		return c, json.Unmarshal(text, &c.Pools)
	}
	var in input
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	switch {
	case len(in.Properties.Pools) > 0:
		in.Pools, in.Autoscaler = in.Properties.Pools, in.Properties.Autoscaler
	case len(in.Pools) > 0:
	case len(in.Value) > 0:
		in.Pools, in.PoolsAlone = in.Value, true
	case in.Size != "" || in.Properties.Size != "" || in.VMs != nil:
		in.Pools, in.PoolsAlone = make([]AgentPool, 1), true
		return &in.Cluster, json.Unmarshal(text, &in.Pools[0])
	}
	return &in.Cluster, nil
}

// plainly says what is wrong with a document in its own words, not in those of Go's types.
func plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("field %s: got %s, which is of another type", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("got %s, must be an object or a list of objects", wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("is not JSON (%w)", err)
	}
	return err
}

// ordered are the entries of a map in the order of its keys.
func ordered[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
