package setup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
)

// deployment plays Azure Resource Manager with a template: its expressions, conditions and
// nested deployments, as far as deploy/nap.json has them.
type deployment struct {
	*testing.T
	env        *armtest.Env
	template   map[string]any
	parameters map[string]any
	scope      string                 // of the subscription or the resource group
	done       map[string]*deployment // nested ones, by name
}

// get is a value below keys.
func get(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// run deploys all resources, in their order in the template, which dependsOn must not
// contradict.
func (d *deployment) run() {
	d.done = map[string]*deployment{}
	resources, _ := d.template["resources"].([]any)
	for _, one := range resources {
		r, _ := one.(map[string]any)
		if condition, has := r["condition"]; has && d.eval(condition) != true {
			continue
		}
		typ, name := r["type"].(string), fmt.Sprint(d.eval(r["name"]))
		if typ == "Microsoft.Resources/deployments" {
			d.nest(r, name)
			continue
		}
		d.put(r, typ, name)
	}
}

// nest deploys a template within the template, with inner expressions.
func (d *deployment) nest(r map[string]any, name string) {
	subscription := "/subscriptions/" + d.env.SubscriptionID
	in := &deployment{T: d.T, env: d.env, template: get(r, "properties", "template").(map[string]any), parameters: map[string]any{},
		scope: subscription + "/resourceGroups/" + fmt.Sprint(d.eval(r["resourceGroup"]))}
	if get(r, "properties", "expressionEvaluationOptions", "scope") != "inner" {
		d.Errorf("deployment %s: expressions are not its own", name)
	}
	given, _ := get(r, "properties", "parameters").(map[string]any)
	for key, v := range given {
		in.parameters[key] = d.eval(get(v, "value"))
	}
	in.run()
	d.done[name] = in
}

// put makes one resource.
func (d *deployment) put(r map[string]any, typ, name string) {
	scope := d.scope
	if s, has := r["scope"]; has {
		scope = fmt.Sprint(d.eval(s))
	}
	namespace, types, _ := strings.Cut(typ, "/")
	path := scope + "/providers/" + namespace
	names := strings.Split(name, "/")
	for i, t := range strings.Split(types, "/") {
		path += "/" + t + "/" + names[i]
	}
	body := map[string]any{}
	for _, key := range []string{"location", "properties"} {
		if v, has := r[key]; has {
			body[key] = d.eval(v)
		}
	}
	version, _ := r["apiVersion"].(string)
	d.call(http.MethodPut, path, version, body)
	// What goes on after the answer is waited for.
	for get(d.call(http.MethodGet, path, version, nil), "properties", "provisioningState") == "Creating" {
		time.Sleep(time.Second)
	}
}

// call asks Azure, and fails the test where that refuses.
func (d *deployment) call(method, path, version string, body any) map[string]any {
	d.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.Fatal(err)
	}
	request, err := http.NewRequestWithContext(d.Context(), method, armtest.Endpoint+path+"?api-version="+version, bytes.NewReader(text))
	if body == nil {
		request, err = http.NewRequestWithContext(d.Context(), method, armtest.Endpoint+path+"?api-version="+version, nil)
	}
	if err != nil {
		d.Fatal(err)
	}
	token, _ := d.env.Server.Token("")
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	resp, err := d.env.HTTP.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= http.StatusBadRequest {
		d.Fatalf("%s %s: status %d: %s", method, path, resp.StatusCode, answer)
	}
	out := map[string]any{}
	_ = json.Unmarshal(answer, &out)
	return out
}

// eval replaces the expressions in a value.
func (d *deployment) eval(v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
			e := &expression{deployment: d, rest: v[1 : len(v)-1]}
			out := e.value()
			if e.rest != "" {
				d.Fatalf("expression %s: %q is left", v, e.rest)
			}
			return out
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.eval(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = d.eval(v[k])
		}
		return out
	}
	return v
}

// expression is what of an expression is not read yet.
type expression struct {
	*deployment
	rest string
}

func (e *expression) take(token string) bool {
	e.rest = strings.TrimLeft(e.rest, " ")
	if !strings.HasPrefix(e.rest, token) {
		return false
	}
	e.rest = e.rest[len(token):]
	return true
}

func (e *expression) word() string {
	i := 0
	for i < len(e.rest) && (e.rest[i] == '_' || e.rest[i] >= '0' && e.rest[i] <= '9' || e.rest[i] >= 'A' && e.rest[i] <= 'Z' || e.rest[i] >= 'a' && e.rest[i] <= 'z') {
		i++
	}
	word := e.rest[:i]
	e.rest = e.rest[i:]
	return word
}

// value reads a text, a number, or a call with what is taken from its result.
func (e *expression) value() any {
	if e.take("'") {
		text, rest, _ := strings.Cut(e.rest, "'")
		e.rest = rest
		return text
	}
	word := e.word()
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	if !e.take("(") {
		e.Fatalf("expected a call of %q at %q", word, e.rest)
	}
	var args []any
	for !e.take(")") {
		if len(args) > 0 && !e.take(",") {
			e.Fatalf("expected a comma at %q", e.rest)
		}
		e.take("")
		args = append(args, e.value())
	}
	out := e.call1(word, args)
	for {
		switch {
		case e.take("."):
			out = get(out, e.word())
		case e.take("["):
			i, _ := e.value().(int)
			list, _ := out.([]any)
			e.take("]")
			if i >= len(list) {
				return nil
			}
			out = list[i]
		default:
			return out
		}
	}
}

// call1 calls a function of templates.
func (e *expression) call1(name string, args []any) any {
	text := func(i int) string { return fmt.Sprint(args[i]) }
	subscription := "/subscriptions/" + e.env.SubscriptionID
	switch name {
	case "subscription":
		return map[string]any{"id": subscription, "subscriptionId": e.env.SubscriptionID}
	case "parameters":
		if v, has := e.parameters[text(0)]; has {
			return v
		}
		v, has := e.template["parameters"].(map[string]any)[text(0)].(map[string]any)["defaultValue"]
		if !has {
			e.Fatalf("parameter %s has no value", text(0))
		}
		return e.eval(v)
	case "variables":
		return e.eval(get(e.template, "variables", text(0)))
	case "format":
		out := text(0)
		for i, a := range args[1:] {
			out = strings.ReplaceAll(out, fmt.Sprintf("{%d}", i), fmt.Sprint(a))
		}
		return out
	case "guid":
		var texts []string
		for _, a := range args {
			texts = append(texts, fmt.Sprint(a))
		}
		return setup.TemplateGUID(texts...)
	case "split":
		var out []any
		for part := range strings.SplitSeq(text(0), text(1)) {
			out = append(out, part)
		}
		return out
	case "empty":
		return text(0) == ""
	case "not":
		return args[0] != true
	case "if":
		if args[0] == true {
			return args[1]
		}
		return args[2]
	case "resourceId":
		return e.scope + "/providers/" + text(0) + "/" + text(1)
	case "reference":
		if nested := e.done[text(0)]; nested != nil {
			outputs := map[string]any{}
			for name, o := range nested.template["outputs"].(map[string]any) {
				outputs[name] = map[string]any{"value": nested.eval(get(o, "value"))}
			}
			return map[string]any{"outputs": outputs}
		}
		if len(args) < 2 {
			e.Fatalf("reference of %s, which is not deployed before", text(0))
		}
		return e.deployment.call(http.MethodGet, text(0), text(1), nil)["properties"]
	}
	e.Fatalf("function %s of templates is not played here", name)
	return nil
}

// TestTemplateMakesWhatNapEnableMakes: deployed on the simulated Azure, deploy/nap.json
// leaves nothing to make for nap enable, also in a network of one's own, and twice.
func TestTemplateMakesWhatNapEnableMakes(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/nap.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]bool{"network of AKS": false, "network and kubelet identity of one's own": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { deployed(t, text, own) }) })
	}
}

func deployed(t *testing.T, text []byte, own bool) {
	env := armtest.New(t, withIssuer, func(c *armsim.Config) { c.ResourceGroups = []string{"net"} })
	want := target(t, env)
	parameters := map[string]any{
		"clusterName": env.ClusterName, "clusterResourceGroup": env.ResourceGroup, "location": env.Region, "oidcIssuer": issuer,
	}
	if own {
		group := "/subscriptions/" + env.SubscriptionID + "/resourceGroups/net/providers/"
		want.SubnetID, want.Cluster.Kubelet.ResourceID = group+"Microsoft.Network/virtualNetworks/own/subnets/nodes",
			group+"Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
		parameters["subnetId"], parameters["kubeletIdentityId"] = want.SubnetID, want.Cluster.Kubelet.ResourceID
	}
	for range 2 {
		d := &deployment{T: t, env: env, parameters: parameters, scope: "/subscriptions/" + env.SubscriptionID}
		if err := json.Unmarshal(text, &d.template); err != nil {
			t.Fatal(err)
		}
		d.run()
	}
	p, err := setup.New(want, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	if made := makeAll(t, p, -1); len(made) > 0 {
		t.Errorf("nap enable makes besides: %q", made)
	}
	machines, catalogue := want.Roles()
	for _, r := range []setup.Role{machines, catalogue} {
		d := &deployment{T: t, env: env}
		got := d.call(http.MethodGet, r.ID, "2022-04-01", nil)
		var actions []string
		permissions, _ := get(got, "properties", "permissions").([]any)
		for _, a := range get(permissions[0], "actions").([]any) {
			actions = append(actions, a.(string))
		}
		if !slices.Equal(actions, r.Actions) || get(got, "properties", "roleName") != r.Name || get(got, "properties", "description") != r.Purpose {
			t.Errorf("role %s of the template is %v, want %+v", r.ID, got, r)
		}
	}
	for _, a := range want.Assignments() {
		(&deployment{T: t, env: env}).call(http.MethodGet, a.Scope+"/providers/Microsoft.Authorization/roleAssignments/"+a.Name, "2022-04-01", nil)
	}
}
