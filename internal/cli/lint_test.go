package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/controller/advice"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	napkube "github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

func TestLintNamesEveryKindOfFinding(t *testing.T) {
	out, errs, code := nap.Run(t, "lint", "-f", "testdata/lint/pools.yaml")
	if code != exitFindings {
		t.Errorf("exit code %d: %s", code, errs)
	}
	clitest.Golden(t, "lint/pools", out)
	out, _, code = nap.Run(t, "lint", "-f", "testdata/lint/pools.yaml", "-o", "json")
	if code != exitFindings || !strings.Contains(out, `"code": "PinnedForEver"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	out, errs, code = nap.Run(t, "lint", "-f", "../../docs/examples/gpu.yaml")
	if code != 0 || out != "1 NodePool, 0 findings.\n" || !strings.Contains(errs, "ManagedGPUExperiencePreview: nap doctor says whether") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	nap.Mistakes(t, map[string]clitest.Mistake{
		"no NodePool": {Args: []string{"lint", "-f", "../../docs/examples/web.yaml"}, Want: "nap: nothing to look at: the input has no NodePool"},
		"old version": {Args: []string{"lint", "-f", "testdata/convert/v1beta1-general-purpose.yaml"}, Want: "nap: testdata/convert/v1beta1-general-purpose.yaml: document 1: NodePool general-purpose: apiVersion"},
	})
}

// poolRecorder keeps what events say, by NodePool.
type poolRecorder map[string][]string

func (r poolRecorder) Publish(evs ...events.Event) {
	for _, e := range evs {
		name := e.InvolvedObject.(*v1.NodePool).Name
		r[name] = append(r[name], e.Reason+": "+e.Message)
	}
}

// TestControllerAdvisesInTheWordsOfLint: on the same NodePools and catalogue the condition
// and the events have the findings of nap lint, word by word.
func TestControllerAdvisesInTheWordsOfLint(t *testing.T) {
	out, _, _ := nap.Run(t, "lint", "-f", "testdata/lint/pools.yaml", "-o", "json")
	var document struct {
		Findings []poollint.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(out), &document); err != nil || len(document.Findings) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string][]poollint.Finding{}
	for _, f := range document.Findings {
		want[f.NodePool] = append(want[f.NodePool], f)
	}
	f := inputFlags{files: []string{"testdata/lint/pools.yaml"}}
	in, err := f.read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := in.source(t.Context(), f.catalogFlags)
	if err != nil {
		t.Fatal(err)
	}
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, m := range in.manifests {
		objects = append(objects, m.Object)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodePool{}).Build()
	told := poolRecorder{}
	loop := &advice.Loop{
		Kube: kube, Recorder: told, Clock: clocktesting.NewFakeClock(time.Now()), Catalogs: source,
		Manages:      func(p *v1.NodePool) bool { return napkube.CheckManaged(p) == nil },
		Excluded:     func(context.Context, *v1.NodePool) func(string) string { return source.Excluded },
		Subscription: func() poollint.Subscription { return poollint.Subscription{} }, Market: func() uint64 { return 0 },
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // it looks once
	if err := loop.Start(ctx); err != nil {
		t.Fatal(err)
	}
	delete(want, "foreign") // nap does not manage it, so another controller writes its conditions
	for name, findings := range want {
		p := &v1.NodePool{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		if c := p.StatusConditions().Get(advice.Condition); !c.IsFalse() || c.Message != advice.Message(findings) {
			t.Errorf("NodePool %s: %v\nwant %s", name, c, advice.Message(findings))
		}
		var said []string
		for i := range findings {
			said = append(said, event.ReasonOf(&findings[i])+": "+event.Line(findings[i].Message+"; "+model.Clause(findings[i].Fix)))
		}
		if !slices.Equal(told[name], said) {
			t.Errorf("NodePool %s: events %q, want %q", name, told[name], said)
		}
		delete(told, name)
	}
	if len(told) > 0 {
		t.Errorf("also %v", told)
	}
}
