package vm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeftoverInterfaceDeletionIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := newLeftovers()
		start, tries := time.Now(), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(ctx, func(_ context.Context, name string) {
				tries++
				if time.Since(start) > 3*time.Minute {
					l.remove(name)
				}
			})
		}()
		l.add("aks-refused")
		l.add("aks-wanted-again")
		l.remove("aks-wanted-again")
		time.Sleep(time.Hour)
		if left := l.list(); len(left) != 0 {
			t.Errorf("left after an hour: %v", left)
		}
		if tries != 19 {
			t.Errorf("tried %d times, want every 10 s for a little more than 3 minutes", tries)
		}
		cancel()
		<-done
	})
}
