// Package template deploys ARM templates on the simulated Azure, as Azure Resource Manager
// does: their expressions, conditions and nested deployments, as far as the templates of
// the folder deploy have them.
//
//	d := template.Deployment{TB: t, Env: env, Scope: group}
//	outputs := d.Deploy(text, map[string]any{"clusterName": "nap"})
package template

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// Deployment is a template on its way into the simulated Azure.
type Deployment struct {
	testing.TB
	// Env is the Azure, Scope the ID of the subscription or the resource group.
	Env   *armtest.Env
	Scope string
	// Refused, where set, is told of an answer with which Azure ends the deployment; without
	// it such an answer fails the test.
	Refused func(status int, answer []byte)

	template   map[string]any
	parameters map[string]any
	done       map[string]*Deployment // nested ones, by name
	ended      bool
}

// Deploy runs a template with values of its parameters, and returns its outputs.
func (d *Deployment) Deploy(text []byte, parameters map[string]any) map[string]any {
	d.Helper()
	d.template, d.parameters, d.ended = nil, parameters, false
	if err := json.Unmarshal(text, &d.template); err != nil {
		d.Fatal(err)
	}
	for name := range parameters {
		if get(d.template, "parameters", name) == nil {
			d.Fatalf("the template has no parameter %s", name)
		}
	}
	d.run()
	outputs := map[string]any{}
	if !d.ended {
		declared, _ := d.template["outputs"].(map[string]any)
		for name, o := range declared {
			outputs[name] = d.eval(get(o, "value"))
		}
	}
	return outputs
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
func (d *Deployment) run() {
	d.done = map[string]*Deployment{}
	resources, _ := d.template["resources"].([]any)
	for _, one := range resources {
		r, _ := one.(map[string]any)
		if d.ended {
			return
		}
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
func (d *Deployment) nest(r map[string]any, name string) {
	subscription := "/subscriptions/" + d.Env.SubscriptionID
	in := &Deployment{TB: d.TB, Env: d.Env, Refused: d.Refused,
		template: get(r, "properties", "template").(map[string]any), parameters: map[string]any{},
		Scope: subscription + "/resourceGroups/" + fmt.Sprint(d.eval(r["resourceGroup"]))}
	if get(r, "properties", "expressionEvaluationOptions", "scope") != "inner" {
		d.Errorf("deployment %s: expressions are not its own", name)
	}
	given, _ := get(r, "properties", "parameters").(map[string]any)
	for key, v := range given {
		in.parameters[key] = d.eval(get(v, "value"))
	}
	in.run()
	d.done[name], d.ended = in, in.ended
}

// put makes one resource.
func (d *Deployment) put(r map[string]any, typ, name string) {
	scope := d.Scope
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
	for _, key := range []string{"location", "identity", "sku", "properties"} {
		if v, has := r[key]; has {
			body[key] = d.eval(v)
		}
	}
	version, _ := r["apiVersion"].(string)
	d.call(http.MethodPut, path, version, body)
	// What goes on after the answer is waited for.
	for !d.ended && get(d.call(http.MethodGet, path, version, nil), "properties", "provisioningState") == "Creating" {
		time.Sleep(time.Second)
	}
}

// call asks Azure, and fails the test where that refuses.
func (d *Deployment) call(method, path, version string, body any) map[string]any {
	d.Helper()
	status, answer := d.Env.Ask(d, method, path, version, body)
	if status >= http.StatusBadRequest && d.Refused != nil {
		d.ended = true
		d.Refused(status, answer)
	} else if status >= http.StatusBadRequest {
		d.Fatalf("%s %s: status %d: %s", method, path, status, answer)
	}
	out := map[string]any{}
	_ = json.Unmarshal(answer, &out)
	return out
}
