package launch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
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

// kind is a launcher with one machine, or none.
type kind struct {
	Launcher
	machine Machine
	err     error
	failure *unavailable.Failure
	ran     bool
}

func (k *kind) Get(context.Context, string) (Machine, error) { return k.machine, k.err }

func (k *kind) Failure(context.Context, string) (*unavailable.Failure, error) { return k.failure, nil }

func (k *kind) Run(ctx context.Context) {
	<-ctx.Done()
	time.Sleep(time.Minute) // what it still has to do
	k.ran = true
}

// The preferred kind is asked first, and the other where there is no such machine; a kind that
// does not answer may have it.
func TestMixedFindsMachinesOfEitherKind(t *testing.T) {
	broken, forbidden := errors.New("no answer"), &azcore.ResponseError{StatusCode: http.StatusForbidden}
	for name, c := range map[string]struct {
		preferred, other error
		aks              bool // what is found
		want             error
	}{
		"the preferred kind":            {nil, ErrNotFound, false, nil},
		"the other kind":                {ErrNotFound, nil, true, nil},
		"the preferred does not answer": {broken, nil, false, broken},
		"neither":                       {ErrNotFound, ErrNotFound, false, ErrNotFound},
		"the preferred is forbidden":    {forbidden, nil, true, nil},
	} {
		vms := &kind{err: c.preferred, failure: unavailable.NewFailure("OfVM", "", nil)}
		aks := &kind{err: c.other, failure: unavailable.NewFailure("OfAKS", "", nil), machine: Machine{AKS: true}}
		x := NewMixed(vms, aks, false)
		m, err := x.Get(t.Context(), "general-a")
		if !errors.Is(err, c.want) || err == nil && m.AKS != c.aks {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		failure, err := x.Failure(t.Context(), "general-a")
		want := map[bool]string{true: "OfAKS", false: "OfVM"}[c.aks]
		if errors.Is(c.want, ErrNotFound) {
			want = "MachineGone"
		}
		if c.want == broken { //nolint:errorlint // that very error
			if !errors.Is(err, broken) || failure != nil {
				t.Errorf("%s: failure %v, %v", name, failure, err)
			}
		} else if err != nil || failure.Code != want {
			t.Errorf("%s: failure %v, %v, want %s", name, failure, err, want)
		}
	}
}

// Both kinds do what Azure allows only later, and are waited for.
func TestMixedRunsBothKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		vms, aks := &kind{}, &kind{}
		NewMixed(vms, aks, true).Run(ctx)
		if !vms.ran || !aks.ran {
			t.Errorf("virtual machines' ran to its end: %t, AKS machines': %t", vms.ran, aks.ran)
		}
	})
}
