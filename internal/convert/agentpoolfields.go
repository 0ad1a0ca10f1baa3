package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// instead is what to do with an agent pool of which something cannot be carried over.
const instead = "leave the pool with AKS, or set the field to null in the input to go without it"

// otherField is a field of agent pools that neither NodePools nor AKSNodeClasses have.
type otherField struct {
	// plain are values that need no word, as null, false, 0 and nothing never do.
	plain []string
	// lost says that pods would get other machines without it.
	lost bool
	// why is what nap does instead, or why it cannot; empty where the field says nothing of
	// new machines.
	why string
}

// otherFields are the fields of agent pools by their path in lower case, as Azure's API
// (https://learn.microsoft.com/rest/api/aks/agent-pools/get) and az have them. Those that
// are carried over are there without a word, so that all others are found.
func otherFields() map[string]otherField {
	const noField = "an AKSNodeClass has no field for it"
	const budgets = "nap replaces machines as budgets of NodePools and pods let it (docs/upgrades.md)"
	const price = "nap pays up to the on-demand price; karpenter.azure.com/max-hourly-cost on the NodePool " +
		"bounds what its machines cost together (docs/prices.md)"
	const newest = "machines run the newest image, or the one that spec.imageVersion of the AKSNodeClass pins"
	const podSubnet = "nap buys nothing where pods have a subnet of their own (docs/limitations.md)"
	const deletes = "nap deletes machines that no pod needs"
	const stopped = "the NodePool buys machines as soon as pods wait for them"
	const evicts = "Azure deletes the spot machines that it takes back from nap"
	const localUser = noField + ": machines are as with LocalUser"
	const wholeGPUs = "nap buys whole GPUs, so that a pod which asks for one gets more, and as many pods need more machines"
	out := map[string]otherField{
		"capacityreservationgroupid":               {lost: true, why: noField},
		"enablenodepublicip":                       {lost: true, why: noField},
		"hostgroupid":                              {lost: true, why: noField},
		"kubeletdisktype":                          {plain: []string{"OS"}, lost: true, why: noField},
		"networkprofile.allowedhostports":          {lost: true, why: noField},
		"networkprofile.applicationsecuritygroups": {lost: true, why: noField},
		"networkprofile.nodepubliciptags":          {lost: true, why: noField},
		"nodepublicipprefixid":                     {lost: true, why: noField},
		"podipallocationmode":                      {plain: []string{"DynamicIndividual"}, lost: true, why: noField},
		"podsubnetid":                              {lost: true, why: podSubnet},
		"proximityplacementgroupid":                {lost: true, why: noField},
		"workloadruntime":                          {plain: []string{"OCIContainer"}, lost: true, why: noField},

		"creationdata.sourceresourceid":             {why: newest},
		"gpuinstanceprofile":                        {why: wholeGPUs},
		"gpuprofile.nvidia.migstrategy":             {plain: []string{"None"}, why: wholeGPUs},
		"messageoftheday":                           {why: noField},
		"powerstate.code":                           {plain: []string{"Running"}, why: stopped},
		"scaledownmode":                             {plain: []string{"Delete"}, why: deletes},
		"scalesetevictionpolicy":                    {plain: []string{"Delete"}, why: evicts},
		"securityprofile.sshaccess":                 {plain: []string{"LocalUser"}, why: localUser},
		"spotmaxprice":                              {plain: []string{"-1"}, why: price},
		"upgradesettings.draintimeoutinminutes":     {plain: []string{"30"}, why: budgets},
		"upgradesettings.maxblockednodes":           {why: budgets},
		"upgradesettings.maxsurge":                  {plain: []string{"10%", "1"}, why: budgets},
		"upgradesettings.maxunavailable":            {plain: []string{"0"}, why: budgets},
		"upgradesettings.nodesoakdurationinminutes": {why: budgets},
		"upgradesettings.undrainablenodebehavior":   {plain: []string{"Schedule"}, why: budgets},
		"upgradestrategy":                           {plain: []string{"Rolling"}, why: budgets},
	}
	for _, name := range strings.Fields(carriedFields) {
		out[name] = otherField{}
	}
	return out
}

// carriedFields are those that need no word.
const carriedFields = `artifactstreamingprofile.enabled availabilityzones count currentorchestratorversion
	enableautoscaling enableencryptionathost enablefips enableultrassd etag gpuprofile.driver gpuprofile.nvidia.managementmode id
	kubeletconfig linuxosconfig localdnsprofile maxcount maxpods mincount mode name nodeimageversion nodeinitializationtaints
	nodelabels nodetaints orchestratorversion osdisksizegb osdisktype ossku ostype provisioningstate resourcegroup
	scalesetpriority securityprofile.enablesecureboot securityprofile.enablevtpm status tags type typepropertiestype
	virtualmachinenodesstatus virtualmachinesprofile vmsize vnetsubnetid`

// otherFields says of every field of the pool that is not carried over what it is, unless
// it has the value that pools have which do not state it.
func (c *converter) otherFields(p *AgentPool) {
	known := otherFields()
	for path, value := range ordered(p.fields) {
		f, is := known[strings.ToLower(path)]
		switch {
		case empty(value), slices.ContainsFunc(f.plain, func(plain string) bool { return strings.EqualFold(plain, fmt.Sprint(value)) }):
		case !is:
			c.note("%s %s is left out: nap does not know the field", path, written(value))
		case f.lost:
			c.lost(path, value, f.why)
		case f.why != "":
			c.note("%s %s is left out: %s", path, written(value), f.why)
		}
	}
}

// lost refuses a field of an agent pool.
func (c *converter) lost(path string, value any, why string) {
	c.refuse("%s: got %s: %s; %s", path, written(value), why, instead)
}

// empty reports whether a value says nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// written is a value as JSON has it; texts stand as they are.
func written(value any) string {
	if s, is := value.(string); is {
		return s
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
