package systemnode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestLastLinesOfLog(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want string
	}{{-1, "a\nb\nc\n"}, {0, ""}, {1, "c\n"}, {2, "b\nc\n"}, {3, "a\nb\nc\n"}, {9, "a\nb\nc\n"}} {
		if got := string(lastLines([]byte("a\nb\nc\n"), tc.n)); got != tc.want {
			t.Errorf("the last %d lines are %q, want %q", tc.n, got, tc.want)
		}
	}
}

func TestPortIsReadFromItsVariables(t *testing.T) {
	p := Port{Number: "PORT", Address: "ADDRESS", Default: 8080}
	for _, tc := range []struct {
		variables map[string]string
		want      int
		listens   bool
	}{
		{nil, 8080, true},
		{map[string]string{"PORT": "9"}, 9, true},
		{map[string]string{"PORT": "9", "ADDRESS": ":7"}, 7, true},
		{map[string]string{"ADDRESS": "0"}, 0, false},
	} {
		got, listens := p.in(tc.variables)
		if listens != tc.listens || listens && got != tc.want {
			t.Errorf("with %v the port is %d, %v, want %d, %v", tc.variables, got, listens, tc.want, tc.listens)
		}
	}
}

func TestResourceFieldIsRoundedUp(t *testing.T) {
	c := &corev1.Container{Name: "c"}
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	for _, tc := range []struct{ field, divisor, want string }{
		{"limits.memory", "1", "1073741824"}, {"limits.memory", "1Mi", "1024"}, {"requests.cpu", "1m", "1500"}, {"requests.cpu", "1", "2"},
	} {
		got, err := resourceField(c, &corev1.ResourceFieldSelector{Resource: tc.field, Divisor: resource.MustParse(tc.divisor)})
		if err != nil || got != tc.want {
			t.Errorf("%s in units of %s is %s, %v, want %s", tc.field, tc.divisor, got, err, tc.want)
		}
	}
	if _, err := resourceField(c, &corev1.ResourceFieldSelector{Resource: "limits.cpu"}); err == nil {
		t.Error("a limit that is not stated has a value")
	}
}

func TestExitCodeIsReadFromLastExit(t *testing.T) {
	for said, want := range map[string]int32{"ended with exit status 3": 3, "ended with exit status 0": 0, "ended with signal: killed": 137} {
		if got := exitCode(said); got != want {
			t.Errorf("%q is exit code %d, want %d", said, got, want)
		}
	}
}
