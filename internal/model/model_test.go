package model

import (
	"math"
	"testing"
)

func TestReasonsAreDocumented(t *testing.T) {
	seen := map[Reason]bool{}
	for _, info := range Reasons() {
		if seen[info.Reason] {
			t.Errorf("%s is documented twice", info.Reason)
		}
		seen[info.Reason] = true
		if info.Meaning == "" || info.Fix == "" {
			t.Errorf("%s lacks a meaning or a fix", info.Reason)
		}
	}
}

func TestRequirementMatches(t *testing.T) {
	for _, c := range []struct {
		name    string
		req     Requirement
		value   string
		present bool
		want    bool
	}{
		{"In holds for a listed value", Requirement{Key: "k", Operator: In, Values: []string{"a", "b"}}, "b", true, true},
		{"In fails for an absent label", Requirement{Key: "k", Operator: In, Values: []string{"a"}}, "", false, false},
		{"NotIn holds for an absent label", Requirement{Key: "k", Operator: NotIn, Values: []string{"a"}}, "", false, true},
		{"NotIn fails for a listed value", Requirement{Key: "k", Operator: NotIn, Values: []string{"a"}}, "a", true, false},
		{"Exists", Requirement{Key: "k", Operator: Exists}, "", true, true},
		{"DoesNotExist", Requirement{Key: "k", Operator: DoesNotExist}, "x", true, false},
		{"Gt is strict", Requirement{Key: "k", Operator: Gt, Values: []string{"4"}}, "4", true, false},
		{"Gte is not", Requirement{Key: "k", Operator: Gte, Values: []string{"4"}}, "4", true, true},
		{"Lt", Requirement{Key: "k", Operator: Lt, Values: []string{"4"}}, "3", true, true},
		{"Lte of a word never holds", Requirement{Key: "k", Operator: Lte, Values: []string{"4"}}, "three", true, false},
	} {
		if got := c.req.Matches(c.value, c.present); got != c.want {
			t.Errorf("%s: %v against %q (present %v) = %v, want %v", c.name, c.req, c.value, c.present, got, c.want)
		}
	}
}

func TestRequirementValidateNamesWhatIsAllowed(t *testing.T) {
	for want, req := range map[string]Requirement{
		`requirement "k": operator In needs at least one value`: {Key: "k", Operator: In},
		`requirement "k": operator Gt takes an integer, got "x"`: {
			Key: "k", Operator: Gt, Values: []string{"x"},
		},
		`requirement "k": unknown operator "Near", allowed: [In NotIn Exists DoesNotExist Gt Lt Gte Lte]`: {Key: "k", Operator: "Near"},
		`requirement "k": operator Exists takes no values, got ["a"]`: {
			Key: "k", Operator: Exists, Values: []string{"a"},
		},
		`requirement "k": operator Lte takes exactly one integer, got ["1" "2"]`: {Key: "k", Operator: Lte, Values: []string{"1", "2"}},
		`requirement has no key`: {Operator: In, Values: []string{"a"}},
	} {
		if err := req.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v: got %v, want %s", req, err, want)
		}
	}
}

func TestAmountsSumSaturates(t *testing.T) {
	r := Resources{math.MaxInt64}.Add(Resources{1})
	if r[0] != math.MaxInt64 || r.Fits(Resources{1000}) {
		t.Errorf("got %v", r)
	}
}

func TestTolerations(t *testing.T) {
	gpu := Taint{"nvidia.com/gpu", "true", NoSchedule}
	for _, c := range []struct {
		name string
		tol  Toleration
		want bool
	}{
		{"Exists without key tolerates all", Toleration{Exists: true}, true},
		{"Exists with another key does not", Toleration{Key: "x", Exists: true}, false},
		{"Equal compares the value", Toleration{Key: "nvidia.com/gpu", Value: "false"}, false},
		{"Equal with the value", Toleration{Key: "nvidia.com/gpu", Value: "true"}, true},
		{"another effect does not match", Toleration{Key: "nvidia.com/gpu", Value: "true", Effect: NoExecute}, false},
	} {
		if got := c.tol.Tolerates(gpu); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if got := Untolerated([]Taint{{"soft", "", PreferNoSchedule}, gpu}, nil); got == nil || *got != gpu {
		t.Errorf("got %v, want %v: a PreferNoSchedule taint keeps nobody away", got, gpu)
	}
}

func TestHostPortsConflictAcrossWildcards(t *testing.T) {
	a := HostPort{"", 80, "TCP"}
	if !a.Conflicts(HostPort{"10.0.0.1", 80, "TCP"}) || a.Conflicts(HostPort{"", 80, "UDP"}) ||
		(HostPort{"10.0.0.2", 80, "TCP"}).Conflicts(HostPort{"10.0.0.1", 80, "TCP"}) {
		t.Error("host port conflicts are wrong")
	}
}

func TestAmountsFormatRoundTrip(t *testing.T) {
	axes := NewAxes("nvidia.com/gpu")
	got := Resources{1500, 3 << 30, 128e9, 30, 2}.Format(axes)
	want := "cpu 1.5, memory 3Gi, ephemeral-storage 119.2Gi, pods 30, nvidia.com/gpu 2"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for millicores, want := range map[int64]string{0: "0", 1: "1m", 999: "999m", -250: "-250m", 1000: "1", 5000000: "5000", 368180: "368.18", 1001: "1.001"} {
		if got := FormatAmount(CPU, millicores); got != want {
			t.Errorf("%d millicores are %q, want %q", millicores, got, want)
		}
	}
	if got := USD(0.192).String(); got != "$0.192/h" {
		t.Errorf("got %q", got)
	}
	if USD(math.NaN()) < USD(1e9) {
		t.Error("a price that is not a number must never be the cheapest")
	}
}

func TestTolerationsThatCompareNumbers(t *testing.T) {
	for _, c := range []struct {
		compare     Operator
		value, have string
		want        bool
	}{
		{Gt, "10", "11", true}, {Gt, "10", "10", false}, {Gt, "10", "9", false},
		{Lt, "10", "9", true}, {Lt, "10", "10", false}, {Lt, "-1", "-2", true},
		{Gt, "10", "many", false}, {Gt, "few", "11", false}, {"", "10", "10", true}, {"", "10", "11", false},
	} {
		toleration := Toleration{Key: "tier", Compare: c.compare, Value: c.value, Effect: NoSchedule}
		if got := toleration.Tolerates(Taint{Key: "tier", Value: c.have, Effect: NoSchedule}); got != c.want {
			t.Errorf("%s %s tolerates %s: %v, want %v", c.compare, c.value, c.have, got, c.want)
		}
		if toleration.Tolerates(Taint{Key: "other", Value: c.have, Effect: NoSchedule}) {
			t.Errorf("%s %s tolerates another key", c.compare, c.value)
		}
	}
}
