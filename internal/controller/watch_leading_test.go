package controller

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

// adding is a manager that notes what is added to it.
type adding struct {
	manager.Manager
	added []manager.Runnable
}

func (a *adding) Add(r manager.Runnable) error {
	a.added = append(a.added, r)
	return nil
}

// Without it the alert that nap does not run would fire for ever.
func TestManagerTellsWhichReplicaActs(t *testing.T) {
	mgr := &adding{}
	if err := tellWhoLeads(mgr); err != nil {
		t.Fatal(err)
	}
	if len(mgr.added) != 1 {
		t.Fatalf("%d runnables are added, want one", len(mgr.added))
	}
	if _, is := mgr.added[0].(*metrics.Leading); !is {
		t.Errorf("a %T is added", mgr.added[0])
	}
}
