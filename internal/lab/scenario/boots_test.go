package scenario

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// failingBoots is an Azure that knows of failed boots alone.
type failingBoots struct {
	Azure
	failed []FailedBoot
	err    error
}

func (f *failingBoots) FailedBoots(context.Context) ([]FailedBoot, error) { return f.failed, f.err }

// claimSaying is a NodeClaim with the condition Booted.
func claimSaying(name, status, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Launched", "status": "True"},
			map[string]any{"type": "Booted", "status": status, "message": message},
		}},
	}}
}

func TestExpectBootFailures(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		args   []string
		failed []FailedBoot
		err    error
		want   string // in the error, empty for none
	}{
		"told in time":     {[]string{"told<=30s"}, []FailedBoot{{"told", now}}, nil, ""},
		"with its words":   {[]string{"told<=30s", "exit code 51"}, []FailedBoot{{"told", now}}, nil, ""},
		"in other words":   {[]string{"told<=30s", "exit code 50"}, []FailedBoot{{"told", now}}, nil, "NodeClaim told says: ended with exit code 51"},
		"late":             {[]string{"told<=30s"}, []FailedBoot{{"told", now.Add(-time.Minute)}}, nil, "says 1m0s after Azure"},
		"not told":         {[]string{"told<=30s"}, []FailedBoot{{"quiet", now.Add(-time.Minute)}}, nil, "NodeClaim quiet does not say"},
		"not told yet":     {[]string{"told<=30s"}, []FailedBoot{{"told", now}, {"quiet", now}}, nil, ""},
		"none has failed":  {[]string{"told<=30s"}, nil, nil, "no provisioning of a machine has failed"},
		"Azure is silent":  {[]string{"told<=30s"}, nil, errors.New("no answer"), "no answer"},
		"no duration":      {[]string{"told<=soon"}, nil, nil, `"soon" is not a duration; say: expect boot-failures told<=DURATION [TEXT]`},
		"something else":   {[]string{"told"}, nil, nil, "say: expect boot-failures told<=DURATION [TEXT]"},
		"too many of them": {[]string{"told<=1s", "a", "b"}, nil, nil, "say: expect boot-failures"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{boots: newBootsSeen()}
			w.boots.changed(claimSaying("quiet", "Unknown", ""))
			w.boots.changed(claimSaying("told", "False", "ended with exit code 51"))
			w.boots.changed(claimSaying("told", "False", "ended with another one"))
			if n := w.boots.count(); n != 1 {
				t.Errorf("%d NodeClaims have told of a failure, want 1", n)
			}
			r := &runner{Stage: Stage{Azure: &failingBoots{failed: c.failed, err: c.err}}, world: w, story: newStory(io.Discard, now)}
			err := r.expect(t.Context(), append([]string{"boot-failures"}, c.args...))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestExpectedConditionOfObject(t *testing.T) {
	object := claimSaying("a", "False", "ended with exit code 51")
	for name, c := range map[string]struct{ args, want string }{
		"as it is":          {"nodeclaim a Booted=False", ""},
		"with its words":    {`nodeclaim a Booted=False code within 5s`, ""},
		"of another status": {"nodeclaim a Booted=True", "nodeclaim a has Booted=False: ended with exit code 51"},
		"in other words":    {"nodeclaim a Booted=False late", "nodeclaim a has Booted=False: ended with"},
		"none":              {"nodeclaim a Drifted=True", "nodeclaim a has no condition Drifted"},
		"no duration":       {"nodeclaim a Booted=False within soon", `"soon" is not a duration; say: expect condition`},
		"no status":         {"nodeclaim a Booted", "say: expect condition KIND NAME TYPE=STATUS"},
		"no type":           {"nodeclaim a", "say: expect condition KIND NAME TYPE=STATUS"},
		"too much":          {"nodeclaim a Booted=False b c", "say: expect condition KIND NAME TYPE=STATUS"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseCondition(strings.Fields(c.args))
			if err == nil {
				err = e.of(object)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
