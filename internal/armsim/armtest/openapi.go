package armtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
)

// aksMachineText says which fields a machine of an agent pool has in the version of
// the API in which it can be written. The SDK's stable version knows two of them.
//
//go:embed openapi/aksmachine.json
var aksMachineText []byte

// field is a field of a definition of the OpenAPI description.
type field struct {
	Type     string   `json:"type"`
	Enum     []string `json:"enum"`
	ReadOnly bool     `json:"readOnly"`
}

// aksMachineDefinitions are the definitions by name, and in each the fields by name.
var aksMachineDefinitions = sync.OnceValue(func() map[string]map[string]field {
	var file struct {
		Definitions map[string]map[string]field `json:"definitions"`
	}
	if err := json.Unmarshal(aksMachineText, &file); err != nil {
		panic(fmt.Sprintf("openapi/aksmachine.json: %v", err)) // it is part of the program
	}
	return file.Definitions
})

// sdkParts are the definitions that the stable API shares.
var sdkParts = map[string]bodyType{
	"SystemData":    modelOf[armcontainerservice.SystemData](),
	"KubeletConfig": modelOf[armcontainerservice.KubeletConfig](), "SysctlConfig": modelOf[armcontainerservice.SysctlConfig](),
	"IPTag": modelOf[armcontainerservice.IPTag](), "AgentPoolWindowsProfile": modelOf[armcontainerservice.AgentPoolWindowsProfile](),
	"ErrorAdditionalInfo": modelOf[armcontainerservice.ErrorAdditionalInfo](),
}

// writableAllTheSame are fields that the description marks as read-only and that AKS
// takes when a machine is made: its own provider names the image in this way
// (Azure/karpenter-provider-azure, pkg/providers/instance/aksmachineinstancehelpers.go).
var writableAllTheSame = []string{".properties.nodeImageVersion"}

// described is a definition as AKS answers it.
type described struct{ definition string }

func (d described) check(body []byte) []string { return checkDefinition(d.definition, body, false) }

// written is a definition as clients send it, without what is read-only.
type written struct{ definition string }

func (d written) check(body []byte) []string { return checkDefinition(d.definition, body, true) }

func checkDefinition(name string, body []byte, sent bool) []string {
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		return []string{err.Error()}
	}
	return checkType("", name, field{}, doc, sent)
}

// checkType lists what of a value does not fit its type.
func checkType(at, typ string, f field, v any, sent bool) []string {
	if element, ok := strings.CutPrefix(typ, "list of "); ok {
		values, isList := v.([]any)
		if !isList {
			return []string{fmt.Sprintf("%s is %v, which is no list", at, v)}
		}
		var out []string
		for _, one := range values {
			out = append(out, checkType(at+"[]", element, field{}, one, sent)...)
		}
		return out
	}
	if element, ok := strings.CutPrefix(typ, "map of "); ok {
		values, isMap := v.(map[string]any)
		if !isMap {
			return []string{fmt.Sprintf("%s is %v, which is no object", at, v)}
		}
		var out []string
		for k, one := range values {
			out = append(out, checkType(at+"."+k, element, field{}, one, sent)...)
		}
		return out
	}
	if part, ok := strings.CutPrefix(typ, "sdk:"); ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return []string{err.Error()}
		}
		var out []string
		for _, e := range sdkParts[part].check(raw) {
			out = append(out, at+e)
		}
		return out
	}
	if fields, ok := aksMachineDefinitions()[typ]; ok {
		return checkFields(at, fields, v, sent)
	}
	if !isScalar(typ, v) || f.Enum != nil && !slices.Contains(f.Enum, fmt.Sprint(v)) {
		return []string{fmt.Sprintf("%s is %v, which is no %s %v", at, v, typ, f.Enum)}
	}
	return nil
}

// checkFields lists what of an object does not fit the fields of its definition.
func checkFields(at string, fields map[string]field, v any, sent bool) []string {
	object, isObject := v.(map[string]any)
	if !isObject {
		return []string{fmt.Sprintf("%s is %v, which is no object", at, v)}
	}
	var out []string
	for k, one := range object {
		path := at + "." + k
		f, known := fields[k]
		switch {
		case !known:
			out = append(out, path+" is not published")
		case one == nil:
		case sent && f.ReadOnly && !slices.Contains(writableAllTheSame, path):
			out = append(out, path+" is read-only")
		default:
			out = append(out, checkType(path, f.Type, f, one, sent)...)
		}
	}
	return out
}

// isScalar says whether a value is of a type without parts.
func isScalar(typ string, v any) bool {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	switch typ {
	case "string":
		return isText
	case "date-time":
		_, err := time.Parse(time.RFC3339Nano, text)
		return err == nil
	case "integer":
		return isNumber && number == math.Trunc(number)
	case "number":
		return isNumber
	case "boolean":
		_, ok := v.(bool)
		return ok
	}
	return false
}

// batchOfMachines is the header BatchPutMachine, as AKS's own provider writes it
// (Azure/karpenter-provider-azure, pkg/providers/azclient/aksmachinesheaderbatch/header.go):
// every entry has all three fields.
type batchOfMachines struct {
	BatchMachines []struct {
		MachineName *string            `json:"machineName"`
		Zones       *[]string          `json:"zones"`
		Tags        *map[string]string `json:"tags"`
	} `json:"batchMachines"`
}

// checkMachinePut lists what is wrong between the header of a batch of machines and
// the body that they share: zones and tags are each machine's own, but AKS wants the
// zones in the body too where ultra disks are asked for (batchkey.go beside header.go).
func checkMachinePut(header http.Header, sent []byte) []string {
	text := header.Get("BatchPutMachine")
	if text == "" {
		return nil
	}
	if errs := strictly[batchOfMachines]().check([]byte(text)); errs != nil {
		return append([]string{"header BatchPutMachine"}, errs...)
	}
	var batch batchOfMachines
	var body struct {
		Zones      []string `json:"zones"`
		Properties struct {
			Tags     map[string]string `json:"tags"`
			Hardware struct {
				UltraSSDEnabled bool `json:"ultraSsdEnabled"`
			} `json:"hardware"`
		} `json:"properties"`
	}
	if json.Unmarshal([]byte(text), &batch) != nil || json.Unmarshal(sent, &body) != nil {
		return []string{"header BatchPutMachine and body cannot be read"}
	}
	var out []string
	for _, m := range batch.BatchMachines {
		if m.MachineName == nil || m.Zones == nil || m.Tags == nil {
			out = append(out, "an entry of header BatchPutMachine lacks machineName, zones or tags")
		}
	}
	if body.Properties.Tags != nil {
		out = append(out, "the body that a batch shares has tags")
	}
	if body.Properties.Hardware.UltraSSDEnabled != (len(body.Zones) > 0) {
		out = append(out, "the body that a batch shares has zones without ultra disks, or ultra disks without zones")
	}
	return out
}
