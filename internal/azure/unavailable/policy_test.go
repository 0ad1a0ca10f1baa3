package unavailable

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// deniedBy is an answer of Azure Policy, in the form that users of AKS node auto-provisioning have
// seen (issue 794 of Karpenter's Azure provider), for one comparison of the size.
func deniedBy(t *testing.T, operator, target, result string) *Failure {
	t.Helper()
	var c Cause
	if err := json.Unmarshal(fmt.Appendf(nil, `{
		"code": "RequestDisallowedByPolicy", "target": "aks-general-purpose-abc12",
		"message": "Resource 'aks-general-purpose-abc12' was disallowed by policy. Reasons: 'The selected virtual machine size is not allowed.'. See error details for policy resource IDs.",
		"additionalInfo": [{"type": "PolicyViolation", "info": {
			"evaluationDetails": {"evaluatedExpressions": [
				{"result": "True", "expressionKind": "Field", "expression": "type", "path": "type",
				 "expressionValue": "Microsoft.Compute/virtualMachines", "targetValue": "Microsoft.Compute/virtualMachines", "operator": "Equals"},
				{"result": %q, "expressionKind": "Field", "expression": "Microsoft.Compute/virtualMachines/sku.name",
				 "path": "properties.hardwareProfile.vmSize", "expressionValue": "Standard_D16_v4", "targetValue": %s, "operator": %q}]},
			"policyDefinitionDisplayName": "Allowed virtual machine size SKUs", "policyAssignmentName": "vm-sizes"}}]}`,
		result, target, operator), &c); err != nil {
		t.Fatal(err)
	}
	return c.Failure(nil)
}

// A policy says what it compares sizes with, so that one refusal tells which sizes it denies.
func TestPolicyOfSizesRulesOutAllThatItDenies(t *testing.T) {
	refused := &instancetype.SKU{Name: "Standard_D16_v4", Family: "standardDv4Family", VCPUs: 16}
	for _, c := range []struct{ operator, target, result, allowed, denied string }{
		{"In", `["Standard_B2ms", "standard_d2s_v5"]`, "False", "Standard_D2s_v5", "Standard_D4s_v5"},
		{"NotIn", `["Standard_B2ms", "standard_d2s_v5"]`, "True", "Standard_D2s_v5", "Standard_D4s_v5"},
		{"In", `["Standard_D16_v4", "Standard_D4s_v5"]`, "True", "Standard_D2s_v5", "Standard_D4s_v5"},
		{"Like", `"Standard_D*"`, "True", "Standard_E2s_v5", "Standard_D4s_v5"},
		{"NotLike", `"Standard_E*_v5"`, "True", "Standard_E2s_v5", "Standard_D4s_v5"},
		{"Contains", `"_v4"`, "True", "Standard_E2s_v5", "Standard_E2s_v4"},
		{"Equals", `"Standard_D16_v4"`, "True", "Standard_D4s_v5", "Standard_D16_v4"},
		// What it compares is not known: the size alone.
		{"Match", `"Standard_D##_v#"`, "True", "Standard_D32_v4", "Standard_D16_v4"},
		{"In", `[]`, "False", "Standard_D4s_v5", "Standard_D16_v4"},
		{"In", `["Standard_D16_v4"]`, "False", "Standard_D4s_v5", "Standard_D16_v4"}, // contradicts itself
	} {
		f := deniedBy(t, c.operator, c.target, c.result)
		if f.Kind != SizeDisallowed || !f.Capacity() || !strings.Contains(f.Error(), "Policy: Allowed virtual machine size SKUs (assignment vm-sizes)") {
			t.Errorf("%s %s: read as %s %q", c.operator, c.target, f.Kind, f)
		}
		now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		before := New(clock)
		before.MarkUnavailable(f, Attempt{SKU: refused, Zone: "eastus-1", CapacityType: model.OnDemand})
		text, err := before.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		after := New(clock)
		if err := after.Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]*Offerings{"controller": before, "the next controller": after} {
			why := func(size string, ct model.CapacityType, zone string) string {
				text, _ := o.Unavailable(&instancetype.SKU{Name: size, Family: "f"}, zone, ct)
				return text
			}
			for _, size := range []string{c.denied, refused.Name} {
				if why(size, model.OnDemand, "eastus-2") == "" || why(size, model.Spot, instancetype.RegionalZone) == "" {
					t.Errorf("%s: %s %s: %s may be bought", name, c.operator, c.target, size)
				}
			}
			if got := why(c.allowed, model.OnDemand, "eastus-1"); got != "" {
				t.Errorf("%s: %s %s: %s may not be bought: %s", name, c.operator, c.target, c.allowed, got)
			}
		}
		if n := after.Forget("standardESv5Family"); n != 0 {
			t.Errorf("%s %s: nap retry of a family forgets %d policies of sizes", c.operator, c.target, n)
		}
		if n := after.Forget(c.denied); n == 0 && c.denied != refused.Name {
			t.Errorf("%s %s: nap retry %s forgets nothing", c.operator, c.target, c.denied)
		}
		now = now.Add(hourTTL)
		if text, _ := before.Unavailable(refused, "eastus-1", model.OnDemand); text != "" {
			t.Errorf("%s %s: after an hour %s", c.operator, c.target, text)
		}
	}
}

// A policy that changes replaces what it denied before, and the words name the policy.
func TestChangedPolicyOfSizesCounts(t *testing.T) {
	o := New(func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) })
	a := Attempt{SKU: &instancetype.SKU{Name: "Standard_D16_v4"}, Zone: "eastus-1", CapacityType: model.OnDemand}
	o.MarkUnavailable(deniedBy(t, "Like", `"Standard_D*"`, "True"), a)
	e2 := &instancetype.SKU{Name: "Standard_E2s_v5"}
	revision := o.Revision()
	o.MarkUnavailable(deniedBy(t, "In", `["Standard_B2ms"]`, "False"), a)
	why, quota := o.Unavailable(e2, "eastus-1", model.OnDemand)
	want := `Azure is not asked for it: the policy "Allowed virtual machine size SKUs" denies it, RequestDisallowedByPolicy; ` +
		"it is asked again after 2026-03-02T13:00:00Z"
	if why != want || quota || o.Revision() == revision {
		t.Errorf("got %q, quota %v, revision %d after %d", why, quota, o.Revision(), revision)
	}
}

// Other policies say nothing about a size: the launch gives up, and says which policy it was.
func TestOtherPoliciesGiveUp(t *testing.T) {
	c := Cause{Code: policyCode, Message: "Resource 'nic' was disallowed by policy.", AdditionalInfo: []AdditionalInfo{
		{Type: "PolicyViolation", Info: json.RawMessage(`{"policyAssignmentDisplayName": "Require a tag",
			"evaluationDetails": {"evaluatedExpressions": [{"expression": "tags[owner]", "operator": "Exists", "targetValue": "false", "result": "True"}]}}`)},
		{Type: "PolicyViolation", Info: json.RawMessage(`"of another form"`)},
	}}
	f := c.Failure(nil)
	if f.Kind != Disallowed || f.Capacity() || f.Message != "Resource 'nic' was disallowed by policy. Policy: Require a tag, which compares tags[owner]." {
		t.Errorf("read as %s %q", f.Kind, f.Message)
	}
	// AKS may pass on the words alone.
	if f := NewFailure(policyCode, "Policy identifiers: '[{\"policyDefinition\":{\"id\":\"/providers/Microsoft.Authorization/"+
		"policyDefinitions/"+allowedSizes+"\"}}]'", nil); f.Kind != SizeDisallowed {
		t.Errorf("the built-in policy of sizes is read as %s", f.Kind)
	}
}
