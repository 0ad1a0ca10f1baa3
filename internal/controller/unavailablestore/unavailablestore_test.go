package unavailablestore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// notes are a source that remembers one sentence.
type notes struct {
	mu       sync.Mutex
	text     string
	revision uint64
}

func (n *notes) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = text
	n.revision++
}

func (n *notes) Revision() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

func (n *notes) Marshal() ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []byte(n.text), nil
}

func (n *notes) Unmarshal(text []byte) error {
	if string(text) == "garbage" {
		return errors.New("not mine")
	}
	n.say(string(text))
	return nil
}

func TestTrap5StoreSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
		run := func(n *notes) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				loop := &Loop{Reader: kube, Writer: kube, Namespace: "kube-system", Sources: map[string]Source{Key: n}, Clock: clock.RealClock{}}
				if err := loop.Start(ctx); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			return func() { cancel(); group.Wait() }
		}
		stored := func() string {
			var c corev1.ConfigMap
			if err := client.IgnoreNotFound(kube.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, &c)); err != nil {
				t.Fatal(err)
			}
			return c.Data[Key]
		}

		first := &notes{}
		stop := run(first)
		if got := stored(); got != "" {
			t.Errorf("before anything was learned the ConfigMap says %q", got)
		}
		for _, text := range []string{"D4s_v5 is sold out", "E4s_v5 too"} {
			first.say(text)
			time.Sleep(2 * every)
			if got := stored(); got != text {
				t.Errorf("the ConfigMap says %q, want %q", got, text)
			}
		}
		stop()

		second := &notes{}
		stop = run(second)
		if second.text != "E4s_v5 too" {
			t.Errorf("the next process remembers %q", second.text)
		}
		second.say("garbage")
		time.Sleep(2 * every)
		stop()

		third := &notes{}
		stop = run(third)
		if third.text != "" {
			t.Errorf("from what it cannot read the next process takes %q", third.text)
		}
		third.say("D8s_v5 is sold out")
		time.Sleep(2 * every)
		stop()
		if got := stored(); got != "D8s_v5 is sold out" {
			t.Errorf("the ConfigMap says %q after it could not be read", got)
		}
	})
}
