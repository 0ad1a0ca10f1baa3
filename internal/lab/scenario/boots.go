package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// FailedBoot is a machine whose provisioning failed, as Azure says.
type FailedBoot struct {
	// Claim is the NodeClaim for which the machine was made.
	Claim string
	// Reported is when Azure reported the failure.
	Reported time.Time
}

// bootsSeen remembers since when NodeClaims say that their machines do not become
// nodes. It is safe for concurrent use.
type bootsSeen struct {
	mu    sync.Mutex
	since map[string]time.Time
	text  map[string]string
}

func newBootsSeen() *bootsSeen {
	return &bootsSeen{since: map[string]time.Time{}, text: map[string]string{}}
}

// changed takes a NodeClaim that was added or changed.
func (b *bootsSeen) changed(claim *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != v1beta1.ConditionBooted || fields["status"] != "False" {
			continue
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, known := b.since[claim.GetName()]; !known {
			b.since[claim.GetName()], b.text[claim.GetName()] = time.Now(), fmt.Sprint(fields["message"])
		}
		return
	}
}

// count is how many NodeClaims have said so.
func (b *bootsSeen) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.since)
}

// of is since when a NodeClaim says that its machine has failed, and its words; false
// when it never did.
func (b *bootsSeen) of(claim string) (since time.Time, text string, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, told = b.since[claim]
	return since, b.text[claim], told
}

// expectBootFailures says whether every failure of a machine's provisioning that Azure
// has reported was told on its NodeClaim, within some time and with a text.
func (r *runner) expectBootFailures(ctx context.Context, args []string) error {
	const usage = "say: expect boot-failures told<=DURATION [TEXT]"
	if len(args) == 0 || len(args) > 2 || !strings.HasPrefix(args[0], "told<=") {
		return errors.New(usage)
	}
	most, err := time.ParseDuration(strings.TrimPrefix(args[0], "told<="))
	if err != nil {
		return fmt.Errorf("%q is not a duration; %s", strings.TrimPrefix(args[0], "told<="), usage)
	}
	failed, err := r.Azure.FailedBoots(ctx)
	if err != nil {
		return err
	}
	if len(failed) == 0 {
		return fmt.Errorf("no provisioning of a machine has failed")
	}
	slowest := time.Duration(0)
	for _, f := range failed {
		since, text, told := r.world.boots.of(f.Claim)
		switch {
		case !told && time.Since(f.Reported) < most:
			continue // there is time yet
		case !told:
			return fmt.Errorf("NodeClaim %s does not say that its machine's provisioning failed", f.Claim)
		case since.Sub(f.Reported) > most:
			return fmt.Errorf("NodeClaim %s says %s after Azure that its machine's provisioning failed", f.Claim,
				since.Sub(f.Reported).Round(time.Second))
		case len(args) == 2 && !strings.Contains(text, args[1]):
			return fmt.Errorf("NodeClaim %s says: %s", f.Claim, text)
		}
		slowest = max(slowest, since.Sub(f.Reported))
	}
	r.story.line("boot", fmt.Sprintf("%d failed boots told, the slowest %.1f s after Azure reported it", len(failed), slowest.Seconds()))
	return nil
}

// conditionUsage is how a condition is expected.
const conditionUsage = "say: expect condition KIND NAME TYPE=STATUS [TEXT] [within DURATION]"

// expectation is what a condition is to be.
type expectation struct {
	kind, name, condition, status, text string
	within                              time.Duration
}

func parseCondition(args []string) (expectation, error) {
	var e expectation
	if n := len(args); n > 2 && args[n-2] == "within" {
		var err error
		if e.within, err = time.ParseDuration(args[n-1]); err != nil {
			return e, fmt.Errorf("%q is not a duration; %s", args[n-1], conditionUsage)
		}
		args = args[:n-2]
	}
	if len(args) < 3 || len(args) > 4 {
		return e, errors.New(conditionUsage)
	}
	e.kind, e.name = args[0], args[1]
	var ok bool
	if e.condition, e.status, ok = strings.Cut(args[2], "="); !ok {
		return e, errors.New(conditionUsage)
	}
	if len(args) == 4 {
		e.text = args[3]
	}
	return e, nil
}

// of says how an object differs from what is expected; nil when it does not.
func (e *expectation) of(object *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read the conditions of %s %s: %w", e.kind, e.name, err)
	}
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != e.condition {
			continue
		}
		message, _ := fields["message"].(string)
		if fields["status"] != e.status || !strings.Contains(message, e.text) {
			return fmt.Errorf("%s %s has %s=%s: %s", e.kind, e.name, e.condition, fields["status"], message)
		}
		return nil
	}
	return fmt.Errorf("%s %s has no condition %s", e.kind, e.name, e.condition)
}

// expectCondition says whether an object has a condition, now or within some time.
func (r *runner) expectCondition(ctx context.Context, args []string) error {
	e, err := parseCondition(args)
	if err != nil {
		return err
	}
	objects, err := r.resource(e.kind)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.patient(e.within))
	defer cancel()
	for {
		object, err := objects.Get(context.WithoutCancel(ctx), e.name, metav1.GetOptions{})
		if err == nil {
			err = e.of(object)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return err
		}
	}
}
