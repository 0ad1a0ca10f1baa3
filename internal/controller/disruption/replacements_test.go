package disruption

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// failing reads nothing.
type failing struct {
	client.Reader
	err error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

// forgetting remembers which claims Karpenter's mirror is to forget.
type forgetting struct {
	toldCluster
	forgotten []string
}

func (c *forgetting) DeleteNodeClaim(name string) { c.forgotten = append(c.forgotten, name) }

// A replacement that is gone is counted on no more. One of which nothing is known still is.
func TestReplacementIsForgottenOnceItIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		gone bool
	}{
		"gone":                   {apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "new"), true},
		"the API server is away": {errors.New("connection refused"), false},
	} {
		store, cluster := fleet.NewStore(), &forgetting{}
		w := mirror{store, kube.NewMirror(store, kube.Settings{})}
		claim := &karpv1.NodeClaim{}
		claim.Name = "new"
		w.Expect(claim)
		r := &replacements{clients: Clients{Live: failing{err: c.err}}, mirror: w, cluster: cluster}
		err := r.dropUnused(t.Context(), &Record{ID: "x"}, "new")
		if (err == nil) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
		if counts := store.Snapshot().Claim("new") != nil; counts == c.gone {
			t.Errorf("%s: it counts: %t", name, counts)
		}
		if told := slices.Contains(cluster.forgotten, "new"); told != c.gone {
			t.Errorf("%s: Karpenter's mirror forgets it: %t", name, told)
		}
	}
}
