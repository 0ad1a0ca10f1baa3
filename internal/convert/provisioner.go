package convert

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/document"
)

// provisioner makes a NodePool of a Provisioner.
func (c *converter) provisioner(o map[string]any) map[string]any {
	old := section(o, "spec")
	c.known(old)
	c.machines = "spec"
	template, disruption := map[string]any{}, map[string]any{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
	for _, field := range []string{"requirements", "taints", "startupTaints"} {
		if v, has := old[field]; has {
			template[field] = v
		}
	}
	if seconds, has := number(old["ttlSecondsUntilExpired"]); has {
		template["expireAfter"] = fmt.Sprintf("%ds", seconds)
	} else {
		template["expireAfter"] = "Never"
	}
	if seconds, has := number(old["ttlSecondsAfterEmpty"]); has {
		disruption["consolidateAfter"] = fmt.Sprintf("%ds", seconds)
	}
	if consolidation, _ := old["consolidation"].(map[string]any); consolidation["enabled"] == true {
		disruption["consolidationPolicy"], disruption["consolidateAfter"] = "WhenEmptyOrUnderutilized", "0s"
	}
	template["nodeClassRef"] = map[string]any{"name": c.provider(old)}
	spec := map[string]any{"disruption": disruption, "template": map[string]any{"spec": template}}
	if resources, is := section(old, "limits")["resources"].(map[string]any); is {
		spec["limits"] = resources
	}
	if weight, has := old["weight"]; has {
		spec["weight"] = weight
	}
	meta := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if v, has := old[field]; has {
			meta[field] = v
		}
	}
	if len(meta) > 0 {
		section(spec, "template")["metadata"] = meta
	}
	out := map[string]any{"apiVersion": versionPools, "kind": kindNodePool, "metadata": o["metadata"], "spec": spec}
	c.nodePool(out)
	if kubelet, has := old["kubeletConfiguration"].(map[string]any); has {
		c.kubelet("spec.kubeletConfiguration", kubelet, out)
	}
	return out
}

// provisionerSpec is the specification of a Provisioner of karpenter.sh/v1alpha5. Its fields are
// read one by one; a document is held against it, so that none is lost.
type provisionerSpec struct {
	Annotations   map[string]string `json:"annotations"`
	Labels        map[string]string `json:"labels"`
	Requirements  []json.RawMessage `json:"requirements"`
	Taints        []json.RawMessage `json:"taints"`
	StartupTaints []json.RawMessage `json:"startupTaints"`
	Weight        int64             `json:"weight"`
	Consolidation struct {
		Enabled bool `json:"enabled"`
	} `json:"consolidation"`
	Limits struct {
		Resources map[string]json.RawMessage `json:"resources"`
	} `json:"limits"`
	Kubelet           map[string]json.RawMessage `json:"kubeletConfiguration"`
	Provider          json.RawMessage            `json:"provider"`
	ProviderRef       providerRef                `json:"providerRef"`
	AfterEmptySeconds int64                      `json:"ttlSecondsAfterEmpty"`
	UntilExpired      int64                      `json:"ttlSecondsUntilExpired"`
}

type providerRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// known refuses the fields that a Provisioner does not have, and values of another type.
func (c *converter) known(spec map[string]any) {
	written, err := json.Marshal(map[string]any{"spec": spec})
	if err == nil {
		err = document.Check(written, &struct {
			Spec provisionerSpec `json:"spec"`
		}{})
	}
	for _, problem := range flat(err) {
		c.refuse("%w", problem)
	}
}

// flat are the errors that one joins.
func flat(err error) []error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// provider is the name of the node class of a Provisioner.
func (c *converter) provider(spec map[string]any) string {
	if inline, has := spec["provider"]; has && !empty(inline) {
		c.refuse("spec.provider: got %s, which is another cloud's: %s", written(inline), classInstead)
	}
	ref, _ := spec["providerRef"].(map[string]any)
	if kind := text(ref, "kind"); kind != "" && kind != kindClass {
		c.refuse("spec.providerRef.kind: got %s, allowed: %s: %s", kind, kindClass, classInstead)
	}
	return cmp.Or(text(ref, "name"), "default")
}
