package purchasebackoff

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestSentencesListThreeNames(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "a, b, c": {"a", "b", "c"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"},
	} {
		if got := listed(names); got != want {
			t.Errorf("%q: got %q, want %q", names, got, want)
		}
	}
}

// The condition stays false while the class is paused, and is taken back by who wrote it.
func TestRegistrationHealthFollowsThePause(t *testing.T) {
	pool := &karpv1.NodePool{}
	conditions := pool.StatusConditions()
	record := &Record{Key: "class default", Count: 3}
	for range 2 { // it is written again and again
		setRegistrationHealth(conditions, true, record)
		if c := conditions.Get(karpv1.ConditionTypeNodeRegistrationHealthy); !c.IsFalse() || c.Message != Text(record) {
			t.Fatalf("paused: %+v", c)
		}
		if unhealthy(pool) == nil {
			t.Fatal("what is written is not read")
		}
	}
	setRegistrationHealth(conditions, false, record)
	if c := conditions.Get(karpv1.ConditionTypeNodeRegistrationHealthy); !c.IsTrue() {
		t.Errorf("resumed: %+v", c)
	}
	conditions.SetFalse(karpv1.ConditionTypeNodeRegistrationHealthy, ReasonRegistrationFailed, "Karpenter's own words")
	setRegistrationHealth(conditions, false, record)
	if c := conditions.Get(karpv1.ConditionTypeNodeRegistrationHealthy); !c.IsFalse() {
		t.Errorf("Karpenter's condition was taken back: %+v", c)
	}
}

func TestUnhealthyPoolIsToldByOneCondition(t *testing.T) {
	for _, c := range []status.Condition{
		{Type: karpv1.ConditionTypeNodeRegistrationHealthy, Status: "True", Reason: ReasonRegistrationFailed},
		{Type: "Another", Status: "False", Reason: ReasonRegistrationFailed},
		{Type: karpv1.ConditionTypeNodeRegistrationHealthy, Status: "False", Reason: "Another"},
	} {
		pool := &karpv1.NodePool{}
		pool.Status.Conditions = []status.Condition{c}
		if got := unhealthy(pool); got != nil {
			t.Errorf("%+v is read as a class that does not register", c)
		}
	}
}

func TestRoundsCountUntilTheyAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(clock.RealClock{})
		for range mostRounds - 1 {
			r.count("web", time.Now())
		}
		time.Sleep(roundsForgotten)
		r.count("web", time.Now())
		if !r.spent("web") {
			t.Error("rounds are forgotten before their time")
		}
	})
}
