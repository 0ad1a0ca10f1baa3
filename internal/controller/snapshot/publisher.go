package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// every is how often the publisher looks whether there is something new. What is learned
// in the last seconds before a crash is lost.
const every = 5 * time.Second

// A controller that starts says for a moment that it buys nothing yet: it has not read its
// mode. In its first seconds this is looked at more often, so that a user who asks then is told
// what holds.
const (
	startUp      = 15 * time.Second
	startUpEvery = time.Second
)

// Heartbeat is how often the Snapshot is written where nothing has changed, so that its
// time says whether the controller lives.
const Heartbeat = time.Minute

// The names of sources.
const (
	MemoryRefusals  = "refusals"
	MemoryPurchases = "purchases"
	MemoryPrices    = "prices"
)

// Source is something that a controller which starts must know again. Losing it does no
// harm but a refusal or a purchase for each entry, so nothing waits for it.
type Source interface {
	// Marshal writes everything down, in well below a megabyte.
	Marshal() ([]byte, error)
	// Unmarshal adds what an earlier process wrote down. An error changes nothing.
	Unmarshal([]byte) error
}

// Publisher writes the snapshot, on the leader alone. It is a manager's runnable.
type Publisher struct {
	// Reader reads the API server itself: a cache would watch the snapshots.
	Reader client.Reader
	Writer client.Writer
	Clock  clock.Clock
	// Memory are the sources by their name.
	Memory map[string]Source
	// Collect fills in what is known now; nil for the memory alone.
	Collect func(context.Context, *Document) error
	// Forget forgets what Azure has refused of VM sizes or families, or of all (*), asks
	// for the quota, and returns how many refusals that were; nil where nothing is known.
	Forget func(ctx context.Context, names []string) int

	// written is the digest of the document that was written last, before it was packed; set
	// is which of the two sets of shards it is in, shards how many each set has. One
	// goroutine uses them.
	written string
	set     int
	shards  [2]int
	// head is what the Snapshot says, written last.
	head v1alpha1.SnapshotStatus
	// restored is set once what an earlier controller wrote was read.
	restored atomic.Bool
}

// NeedLeaderElection makes the manager run the publisher on the leader alone.
func (p *Publisher) NeedLeaderElection() bool { return true }

// Start reads what an earlier controller wrote, once, and writes whenever something has
// changed, until the context ends.
func (p *Publisher) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithValues("Snapshot", v1alpha1.SnapshotName)
	started := p.Clock.Now()
	for ctx.Err() == nil {
		err := p.restore(ctx)
		if err == nil {
			p.restored.Store(true)
			break
		}
		logger.Error(err, "reading what an earlier controller wrote down failed, trying again")
		p.pause(ctx, every)
	}
	for ctx.Err() == nil {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "writing the snapshot did not succeed, trying again")
		}
		next := every
		if p.head.Health.Buying != "" && p.Clock.Since(started) < startUp {
			next = startUpEvery
		}
		p.pause(ctx, next)
	}
	return nil
}

// Restored reports whether the sources have what an earlier controller wrote down. Any
// goroutine may ask.
func (p *Publisher) Restored() bool { return p.restored.Load() }

func (p *Publisher) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-p.Clock.After(d):
	}
}

// restore gives the sources what the snapshot has for them. Content that a source does not
// understand is of another version: it is passed over, as is a snapshot that is broken.
func (p *Publisher) restore(ctx context.Context) error {
	if err := p.findShards(ctx); err != nil {
		return err
	}
	d, err := Read(ctx, p.Reader)
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case errors.As(err, &status):
		return err
	case err != nil:
		log.FromContext(ctx).Error(err, "what an earlier controller wrote down cannot be read and is passed over")
		return nil
	}
	for name, source := range p.Memory {
		if d.Memory[name] == "" {
			continue
		}
		if err := source.Unmarshal([]byte(d.Memory[name])); err != nil {
			log.FromContext(ctx).Error(err, "what an earlier controller wrote down cannot be read and is passed over", "source", name)
		}
	}
	return nil
}

// findShards finds the shards of both sets, and which set the Snapshot names: the next one is
// written into the other.
func (p *Publisher) findShards(ctx context.Context) error {
	var head v1alpha1.Snapshot
	err := p.Reader.Get(ctx, client.ObjectKey{Name: v1alpha1.SnapshotName}, &head)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Snapshot %s: %w", v1alpha1.SnapshotName, err)
	}
	list := v1alpha1.SnapshotShardList{}
	if err := p.Reader.List(ctx, &list); err != nil {
		return fmt.Errorf("list SnapshotShards: %w", err)
	}
	var named [2]int // parts of what the Snapshot names: of a crash, there may be some in the other set, too
	for i := range list.Items {
		s := &list.Items[i]
		for set := range p.shards {
			if s.Name != shardName(set, int(s.Part)) {
				continue
			}
			p.shards[set] = max(p.shards[set], int(s.Part)+1)
			if s.Digest == head.Status.Digest {
				named[set]++
			}
		}
	}
	if named[1] > named[0] {
		p.set = 1
	}
	return nil
}

// publish writes the snapshot unless it says what was written last.
func (p *Publisher) publish(ctx context.Context) error {
	if err := p.retry(ctx); err != nil {
		return err
	}
	d := &Document{Memory: map[string]string{}}
	for name, source := range p.Memory {
		text, err := source.Marshal()
		if err != nil {
			return err
		}
		d.Memory[name] = string(text)
	}
	if p.Collect != nil {
		if err := p.Collect(ctx, d); err != nil {
			return err
		}
	}
	d.Status.Form = Form
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write the snapshot as JSON: %w", err)
	}
	news := digest(text)
	if news == p.written {
		if p.Clock.Since(p.head.Written.Time) < Heartbeat {
			return nil
		}
		p.head.Written = metav1.NewTime(p.Clock.Now())
		return p.writeHead(ctx, p.head)
	}
	data, err := pack(d)
	if err != nil {
		return err
	}
	now := digest(data)
	head, err := shorten(d.Status)
	if err != nil {
		return err
	}
	next := 1 - p.set
	parts := split(data)
	for i, part := range parts {
		if err := p.writeShard(ctx, shardName(next, i), v1alpha1.SnapshotShard{
			Part: int32(i), Parts: int32(len(parts)), Digest: now, Data: part,
		}); err != nil {
			return err
		}
	}
	head.Written = metav1.NewTime(p.Clock.Now())
	head.Shards, head.Digest = int32(len(parts)), now
	if err := p.writeHead(ctx, head); err != nil {
		return err
	}
	p.written, p.set, p.head = news, next, head
	return p.dropShards(ctx, next, len(parts))
}

// retry forgets the refusals that a user has asked to forget, on the Snapshot.
func (p *Publisher) retry(ctx context.Context) error {
	if p.Forget == nil {
		return nil
	}
	// This is asked every few seconds, without the status.
	head := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Snapshot", APIVersion: v1alpha1.GroupVersion().String()}}
	name := client.ObjectKey{Name: v1alpha1.SnapshotName}
	if err := p.Reader.Get(ctx, name, &head); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, asked := head.Annotations[v1beta1.AnnotationRetry]; !asked {
		return nil
	}
	var have v1alpha1.Snapshot
	if err := p.Reader.Get(ctx, name, &have); err != nil {
		return client.IgnoreNotFound(err)
	}
	sizes, asked := have.Annotations[v1beta1.AnnotationRetry]
	if !asked {
		return nil
	}
	n := p.Forget(ctx, strings.Split(sizes, ","))
	log.FromContext(ctx).Info("forgot what Azure has refused, as was asked for", "of", sizes, "refusals", n)
	delete(have.Annotations, v1beta1.AnnotationRetry)
	if err := p.Writer.Update(ctx, &have); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove annotation %s of Snapshot %s: %w", v1beta1.AnnotationRetry, v1alpha1.SnapshotName, err)
	}
	return nil
}

// shardName is the name of a part of one of the two sets of shards.
func shardName(set, part int) string {
	return fmt.Sprintf("%s-%d-%d", v1alpha1.SnapshotName, set, part)
}

// dropShards deletes the parts of a set from so many on.
func (p *Publisher) dropShards(ctx context.Context, set, from int) error {
	for i := from; i < p.shards[set]; i++ {
		o := &v1alpha1.SnapshotShard{ObjectMeta: metav1.ObjectMeta{Name: shardName(set, i)}}
		if err := p.Writer.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete SnapshotShard %s: %w", o.Name, err)
		}
	}
	p.shards[set] = from
	return nil
}

func (p *Publisher) writeShard(ctx context.Context, name string, s v1alpha1.SnapshotShard) error {
	var have v1alpha1.SnapshotShard
	err := p.Reader.Get(ctx, client.ObjectKey{Name: name}, &have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read SnapshotShard %s: %w", name, err)
	}
	s.ObjectMeta = have.ObjectMeta
	if err == nil {
		err = p.Writer.Update(ctx, &s)
	} else {
		s.Name = name
		err = p.Writer.Create(ctx, &s)
	}
	if err != nil {
		return fmt.Errorf("write SnapshotShard %s: %w", name, err)
	}
	return nil
}

func (p *Publisher) writeHead(ctx context.Context, status v1alpha1.SnapshotStatus) error {
	var have v1alpha1.Snapshot
	err := p.Reader.Get(ctx, client.ObjectKey{Name: v1alpha1.SnapshotName}, &have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Snapshot %s: %w", v1alpha1.SnapshotName, err)
	}
	have.Status = status
	if err == nil {
		err = p.Writer.Update(ctx, &have)
	} else {
		have.Name = v1alpha1.SnapshotName
		err = p.Writer.Create(ctx, &have)
	}
	if err != nil {
		return fmt.Errorf("write Snapshot %s: %w", v1alpha1.SnapshotName, err)
	}
	return nil
}
