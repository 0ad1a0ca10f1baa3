package kube

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func TestOwnersBeginAgainWhenTheyWantMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, g := time.Now(), newGrowth()
		step := func(what string, pods int, want time.Time) {
			t.Helper()
			time.Sleep(time.Minute)
			w := &fleet.Workload{UID: "rs", Pods: pods, Since: made}
			if g.date(w); !w.Since.Equal(want) {
				t.Errorf("%s: it creates pods since %s after it was made, want %s", what, w.Since.Sub(made), want.Sub(made))
			}
		}
		step("it is seen", 3, made)
		step("it is as before", 3, made)
		step("it is scaled up", 5, made.Add(3*time.Minute))
		step("it is scaled down", 0, made.Add(3*time.Minute))
		step("it is scaled up from nothing", 2, made.Add(5*time.Minute))
		if g.forget(&fleet.Workload{UID: "rs"}); len(g.of) != 0 {
			t.Errorf("what is gone is kept: %v", g.of)
		}
	})
}

func TestJobsBeginWhenTheyAreStarted(t *testing.T) {
	made := metav1.Now()
	started := metav1.NewTime(made.Add(time.Hour))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train", CreationTimestamp: made}, Status: batchv1.JobStatus{StartTime: &started}}
	if got := Workload(job).Since; !got.Equal(started.Time) {
		t.Errorf("a Job that was suspended begins %s after it was made, want 1h0m0s", got.Sub(made.Time))
	}
}
