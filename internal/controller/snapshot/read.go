package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// ErrNone is that a cluster has no snapshot: no controller has written one yet, or none
// of this version.
var ErrNone = errors.New("the cluster has no snapshot of nap's controller")

// attempts is how often a snapshot is read that is being replaced meanwhile.
const attempts = 3

// Read reads the snapshot of a cluster. The error is ErrNone where there is none.
func Read(ctx context.Context, reader client.Reader) (*Document, error) {
	var err error
	for range attempts {
		var d *Document
		if d, err = readOnce(ctx, reader); !errors.Is(err, errMixed) {
			return d, err
		}
	}
	return nil, err
}

// errMixed is that the shards which a Snapshot names were replaced while they were read.
var errMixed = errors.New("the snapshot is being written, try again")

func readOnce(ctx context.Context, reader client.Reader) (*Document, error) {
	var head v1alpha1.Snapshot
	err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.SnapshotName}, &head)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read Snapshot %s: %w", v1alpha1.SnapshotName, err)
	}
	if head.Status.Form != Form {
		return nil, fmt.Errorf("the Snapshot %s is of form %d, and this version of nap reads form %d: use the controller's version",
			v1alpha1.SnapshotName, head.Status.Form, Form)
	}
	var list v1alpha1.SnapshotShardList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list SnapshotShards: %w", err)
	}
	shards := slices.DeleteFunc(list.Items, func(s v1alpha1.SnapshotShard) bool { return s.Digest != head.Status.Digest })
	slices.SortFunc(shards, func(x, y v1alpha1.SnapshotShard) int { return cmp.Compare(x.Part, y.Part) })
	// Both sets have the same parts where a new leader had nothing new to say.
	shards = slices.CompactFunc(shards, func(x, y v1alpha1.SnapshotShard) bool { return x.Part == y.Part })
	var data []byte
	for i := range shards {
		data = append(data, shards[i].Data...)
	}
	if len(shards) != int(head.Status.Shards) || digest(data) != head.Status.Digest {
		return nil, errMixed
	}
	d, err := unpack(data)
	if err != nil {
		return nil, err
	}
	d.Status.Written = head.Status.Written
	return d, nil
}
