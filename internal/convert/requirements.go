package convert

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// previewDomain is the domain of the labels that AKS had in its preview.
const previewDomain = v1beta1.PreviewLabelDomain + "/"

// requirements brings the requirements of a template to today's keys and values.
func (c *converter) requirements(template map[string]any) {
	list, _ := template["requirements"].([]any)
	for i := range list {
		r, is := list[i].(map[string]any)
		if !is {
			continue
		}
		key := text(r, "key")
		switch {
		case strings.HasPrefix(key, previewDomain):
			c.preview(r, strings.TrimPrefix(key, previewDomain))
		case key == "topology.kubernetes.io/zone":
			c.zones(r)
		default:
			c.foreign(fmt.Sprintf("%s.requirements[%d]", c.machines, i), r)
		}
	}
	if list == nil { // the API wants the field
		template["requirements"] = []any{}
	}
}

// foreign refuses a requirement that is another cloud's by its key or its values.
func (c *converter) foreign(field string, r map[string]any) {
	key := text(r, "key")
	azure, foreign := model.ForeignLabel(key)
	switch {
	case foreign && azure != "":
		c.refuse("%s.key: got %q, which Azure does not have, use: %s", field, key, azure)
	case foreign:
		c.refuse("%s.key: got %q, which Azure does not have: remove the requirement, or use a label of nap catalog -o wide", field, key)
	}
	for _, v := range values(r) {
		switch {
		case key == "node.kubernetes.io/instance-type" && !strings.Contains(v, "_"):
			c.refuse("%s.values: %s: got %q, which is no size of Azure, such as Standard_D4s_v5; nap catalog lists them", field, key, v)
		case key == "topology.kubernetes.io/region" && strings.Contains(v, "-"):
			c.refuse("%s.values: %s: got %q, which is no region of Azure, such as eastus", field, key, v)
		}
	}
}

// values are the values of a requirement as texts.
func values(r map[string]any) []string {
	list, _ := r["values"].([]any)
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func set(r map[string]any, key, operator string, values ...string) {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	r["key"], r["operator"], r["values"] = key, operator, list
}

// preview brings a requirement on a label of the preview to today's, where numbers were
// the least that a machine had to have.
func (c *converter) preview(r map[string]any, name string) {
	old := values(r)
	operator := text(r, "operator")
	switch name {
	case "sku-name":
		set(r, groupAzure+"/sku-name", operator, old...)
	case "sku-series":
		series := make([]string, len(old))
		for i, v := range old {
			if series[i] = c.series(v); series[i] == "" {
				c.refuse("requirement %s%s: no series is called %q; nap catalog -o wide shows karpenter.azure.com/sku-series", previewDomain, name, v)
			}
		}
		set(r, groupAzure+"/sku-series", operator, series...)
	case "sku-cpu", "sku-memory", "sku-gpu-count":
		if least, ok := c.least(r, name, old); ok {
			set(r, groupAzure+"/"+name, "Gt", strconv.FormatInt(least-1, 10))
		}
	case "sku-gpu-memory":
		c.gpuMemory(r, old)
	default:
		c.refuse("requirement %s%s has no successor; nap catalog -o wide shows the labels of sizes", previewDomain, name)
	}
}

// least is the one number of a requirement that meant at least so many.
func (c *converter) least(r map[string]any, name string, old []string) (int64, bool) {
	operator := text(r, "operator")
	if len(old) == 1 {
		n, err := strconv.ParseInt(old[0], 10, 64)
		switch {
		case err != nil:
		case operator == "In" && n > 0, operator == "Gt":
			if operator == "Gt" {
				n++
			}
			return n, true
		case operator == "Lt": // today's key has the number itself
			set(r, groupAzure+"/"+name, operator, old...)
			return 0, false
		}
	}
	c.refuse("requirement %s%s: got %s %q, which cannot be carried over: it meant at least one number; write %s/%s Gt [number-1]",
		previewDomain, name, operator, old, groupAzure, name)
	return 0, false
}

// series finds a series whatever its case and underscores: DSv3 is Ds_v3.
func (c *converter) series(written string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for _, s := range c.opts.Series {
		if plain(s) == plain(written) {
			return s
		}
	}
	return ""
}

// gpuMemory is the memory of one GPU in GiB by the name that sizes carry
// (https://learn.microsoft.com/azure/virtual-machines/sizes/overview#gpu-accelerated).
func gpuMemory() map[string]int64 {
	return map[string]int64{"T4": 16, "A10": 24, "A100": 80, "H100": 80, "H200": 141, "MI300X": 192, "V710": 28}
}

// gpuMemory brings a requirement on the memory of GPUs, which has no label, to one on their
// names.
func (c *converter) gpuMemory(r map[string]any, old []string) {
	const label = previewDomain + "sku-gpu-memory"
	operator := text(r, "operator")
	n, one := int64(0), len(old) == 1
	if one {
		var err error
		n, err = strconv.ParseInt(old[0], 10, 64)
		one = err == nil && n > 0
	}
	words := map[string]string{
		"In": fmt.Sprintf("%d GiB and more", n), "Gt": fmt.Sprintf("more than %d GiB", n), "Lt": fmt.Sprintf("less than %d GiB", n),
	}
	var names, all []string
	for name, gib := range ordered(gpuMemory()) {
		all = append(all, fmt.Sprintf("%s (%d GiB)", name, gib))
		if one && (operator == "In" && gib >= n || operator == "Gt" && gib > n || operator == "Lt" && gib < n) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		set(r, groupAzure+"/sku-gpu-name", "In", names...)
		c.note("%s: memory of GPUs has no label, GPUs with %s are listed by name", label, words[operator])
		return
	}
	why := "which cannot be carried over: it meant at least one number"
	if one && words[operator] != "" {
		why = "but no GPU has " + words[operator]
	}
	c.refuse("requirement %s: got %s %q, %s; write %s/sku-gpu-name In with the GPUs that you mean: %s",
		label, operator, old, why, groupAzure, strings.Join(all, ", "))
}

// noZone is the zone of nodes that are in none.
const noZone = "0"

// zones completes zones that are written as 1, 2 and 3 with the region.
func (c *converter) zones(r map[string]any) {
	old := values(r)
	for i, v := range old {
		if len(v) != 1 || v < "1" || v > "3" {
			if region, zone, _ := strings.Cut(v, "-"); v != noZone && (region == "" || len(zone) != 1 || zone < "1" || zone > "9") {
				c.refuse("requirement %s: got %q, which is no zone of Azure: those are written with their region, such as eastus-1", text(r, "key"), v)
			}
			continue
		}
		if c.opts.Region == "" {
			c.refuse("zone %s is written with its region today, such as eastus-%s: give --region", v, v)
			return
		}
		old[i] = c.opts.Region + "-" + v
	}
	if len(old) > 0 {
		set(r, text(r, "key"), text(r, "operator"), old...)
	}
}
