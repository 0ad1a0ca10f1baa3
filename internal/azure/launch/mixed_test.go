package launch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// deleting is a launcher that answers deletions.
type deleting struct {
	Launcher
	answer error
}

func (d *deleting) Delete(context.Context, string) error { return d.answer }

// A machine is gone when neither kind has it. Until then it is the other kind's answer that
// counts; of two that have none, the one that knows since when.
func TestMixedDeletesOfEitherKind(t *testing.T) {
	gone, broken := &GoneError{At: time.Unix(1, 0)}, errors.New("no answer")
	for name, c := range map[string]struct{ preferred, other, want error }{
		"the preferred kind":                  {nil, ErrNotFound, nil},
		"the preferred kind does not answer":  {broken, nil, broken},
		"the other kind":                      {ErrNotFound, nil, nil},
		"the other kind, the first one is":    {gone, nil, nil},
		"the other kind does not answer":      {gone, broken, broken},
		"neither, known since when":           {gone, ErrNotFound, gone},
		"neither, the other knows since when": {ErrNotFound, gone, gone},
		"neither":                             {ErrNotFound, ErrNotFound, ErrNotFound},
	} {
		for _, aks := range []bool{true, false} {
			vms, machines := &deleting{answer: c.preferred}, &deleting{answer: c.other}
			if aks {
				vms, machines = machines, vms
			}
			if err := NewMixed(vms, machines, aks).Delete(t.Context(), "general-a"); err != c.want { //nolint:errorlint // that very error
				t.Errorf("%s, AKS machines preferred %t: %v, want %v", name, aks, err, c.want)
			}
		}
	}
}

// greeted is a launcher that is told of nodes.
type greeted struct {
	Launcher
	claims []string
}

func (g *greeted) Joined(claim string) { g.claims = append(g.claims, claim) }

// Which kind of machine has become a node need not be known to tell that one has.
func TestMixedTellsBothKindsOfNodes(t *testing.T) {
	vms, machines := &greeted{}, &greeted{}
	NewMixed(vms, machines, true).Joined("general-a")
	if want := []string{"general-a"}; !slices.Equal(vms.claims, want) || !slices.Equal(machines.claims, want) {
		t.Errorf("virtual machines were told of %v, AKS machines of %v, want both of %v", vms.claims, machines.claims, want)
	}
}
