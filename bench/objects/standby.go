package objects

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/bench/onlab"
)

// Standby is what the second of two replicas needs in a cluster of one size, as long as the
// first one has the lease.
type Standby struct {
	Size
	Engine string
	Date   string // when it was measured, as 2026-11-26
	// StartCPU is the processor time from the start of the process until it has been at rest
	// for a while.
	StartCPU time.Duration
	// Idle is the processor time per second while nothing changes but leases, as a share of a
	// core, and Leader that of the first replica in the same time.
	Idle, Leader float64
	// Memory is what is resident after that, Peak the most of the whole run, in bytes, and
	// LeaderMemory what is resident of the first replica then.
	Memory, Peak, LeaderMemory int64
}

// standbyFor is how long a replica at rest is measured.
const standbyFor = 5 * time.Minute

// The lease is held by the benchmark itself, for longer than a run takes: the first replica
// does without, since others of its kind are measured so.
const (
	leaseNamespace = metav1.NamespaceSystem
	leaseName      = "karpenter-leader-election"
	leaseHeld      = int32(6 * 60 * 60) // seconds
)

// MeasureStandby makes a cluster of the size in a lab of its own, and measures the second of
// two replicas of an engine on it.
func MeasureStandby(ctx context.Context, opts Options, engine string, size Size) (*Standby, error) {
	result := &Standby{Size: size, Engine: engine, Date: today()}
	err := onFleet(ctx, opts, engine, size, func(ctx context.Context, f *fleet, dir string) error {
		return result.measure(ctx, f, dir)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (s *Standby) measure(ctx context.Context, f *fleet, dir string) error {
	if err := f.kube.Create(ctx, heldLease(time.Now())); err != nil {
		return fmt.Errorf("hold the lease: %w", err)
	}
	first, err := f.lab.Run(ctx, s.Engine, filepath.Join(dir, "leader.log"), "--max-nodes=0")
	if err != nil {
		return err
	}
	defer first.Kill()
	if err := pause(ctx, settleFor); err != nil {
		return err
	}
	// The last of two flags of one name counts.
	second, err := f.lab.Run(ctx, s.Engine, filepath.Join(dir, "standby.log"), "--max-nodes=0", "--disable-leader-election=false")
	if err != nil {
		return err
	}
	defer second.Kill()
	if err := pause(ctx, settleFor); err != nil {
		return err
	}
	if s.StartCPU, err = second.CPU(); err != nil {
		return err
	}
	if err := s.rest(ctx, first, second); err != nil {
		return err
	}
	if err := f.complete(ctx); err != nil {
		return err
	}
	return stillHeld(ctx, f.kube)
}

// rest measures both replicas at rest.
func (s *Standby) rest(ctx context.Context, first, second *onlab.Controller) error {
	var ofSecond time.Duration
	ofFirst, err := cpuOf(first, func() (err error) {
		ofSecond, err = cpuOf(second, func() error { return pause(ctx, standbyFor) })
		return err
	})
	if err != nil {
		return err
	}
	s.Idle, s.Leader = ofSecond.Seconds()/standbyFor.Seconds(), ofFirst.Seconds()/standbyFor.Seconds()
	if s.Memory, err = second.Memory(); err != nil {
		return err
	}
	if s.Peak, err = second.Peak(); err != nil {
		return err
	}
	s.LeaderMemory, err = first.Memory()
	return err
}

// holder is who holds the lease of a benchmark.
const holder = "bench"

// heldLease is a lease that nothing else can take before it ends.
func heldLease(now time.Time) *coordinationv1.Lease {
	who, seconds, at := holder, leaseHeld, metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &who, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at},
	}
}

// stillHeld fails where a replica has taken the lease: it was no standby then.
func stillHeld(ctx context.Context, kube client.Client) error {
	var l coordinationv1.Lease
	if err := kube.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: leaseName}, &l); err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	if by := l.Spec.HolderIdentity; by == nil || *by != holder {
		return fmt.Errorf("the lease %s/%s is no longer held by the benchmark: the replica was no standby", leaseNamespace, leaseName)
	}
	return nil
}
