package race

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLongestWaitCountsPodsThatStillWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObserver()
		pod := func(uid types.UID, node string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: node}}
		}
		wants := func(when string, want time.Duration) {
			t.Helper()
			if got := o.look().longestWait; got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		o.pod(pod("a", ""))
		o.pod(pod("b", "node"))
		time.Sleep(2 * time.Second)
		o.pod(pod("a", ""))
		o.pod(pod("a", "node"))
		time.Sleep(time.Second)
		wants("a waited", 2*time.Second)
		o.pod(pod("c", ""))
		time.Sleep(5 * time.Second)
		wants("c waits", 5*time.Second)
		o.podGone(pod("c", ""))
		wants("c is gone", 2*time.Second)
		o.reset()
		wants("after reset", 0)
	})
}
