package launch

import (
	"context"
	"errors"
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
