package document

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckNamesFieldValueAndWhatIsAllowed(t *testing.T) {
	type part struct {
		Name  string         `json:"name"`
		Price *float64       `json:"price,omitempty"`
		Count int            `json:"count"`
		On    bool           `json:"on"`
		Slots map[string]int `json:"slots"`
	}
	type whole struct {
		Parts []part `json:"parts"`
	}
	const fields = "name, price, count, on, slots"
	for text, want := range map[string]string{
		`{"parts":[{"name":"a","price":1.5,"count":2,"on":true,"slots":{"a":1}},{"name":7,"price":null}]}`: "",
		`[]`:                       "got a list, must be a mapping with the fields parts",
		`{"part":[]}`:              "part: there is no such field, allowed: parts",
		`{"parts":"a"}`:            `parts: got "a", must be a list`,
		`{"parts":[3]}`:            "parts[0]: got 3, must be a mapping with the fields " + fields,
		`{"parts":[{"name":{}}]}`:  "parts[0].name: got a mapping, must be a text",
		`{"parts":[{"on":"yes"}]}`: `parts[0].on: got "yes", must be true or false`,
		`{"parts":[{},{"price":"cheap","count":1.5,"slots":{"x.y/z":"1"},"size":1,"sold":2}]}`: `parts[1].count: got 1.5, must be a whole number
parts[1].price: got "cheap", must be a number
parts[1].slots[x.y/z]: got "1", must be a whole number
parts[1].size, parts[1].sold: there are no such fields, allowed: ` + fields,
		`{"parts":[{"slots":[]}]}`: "parts[0].slots: got a list, must be a mapping",
	} {
		err := Check([]byte(text), &whole{})
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
