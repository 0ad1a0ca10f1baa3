package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench/onlab"
)

// Figures are what one engine needs in a cluster of one size.
type Figures struct {
	Size
	Engine string
	Date   string // when it was measured, as 2026-11-26
	// FirstClaim is the time from the start of the process to the first NodeClaim for pods
	// that waited already, StartCPU the processor time until then.
	FirstClaim, StartCPU time.Duration
	// Idle is the processor time per second while nothing changes, as a share of a core.
	Idle float64
	// Memory is what is resident after that, Peak the most of the whole run, in bytes.
	Memory, Peak int64
	// PerEvent is the processor time that one change of a pod costs; 0 where what is taken at
	// rest hides it.
	PerEvent time.Duration
	// OnePod is the time from the creation of a Deployment of one pod, which fits on no node,
	// to its NodeClaim, and OnePodCPU the processor time from then until a second after it,
	// less what the engine takes at rest: medians of several such Deployments.
	OnePod, OnePodCPU time.Duration
	// Decision is the time from the moment in which budgets permit to disrupt all nodes until
	// the first one is; 0 when none was within decisionWithin.
	Decision, DecisionCPU time.Duration
}

// How long is waited and measured.
const (
	planWithin     = 10 * time.Minute
	restFor        = 20 * time.Second
	settleFor      = 150 * time.Second // what a start sets off is over
	youngFor       = 10 * time.Minute  // both engines look at younger nodes more often
	idleFor        = 10 * time.Minute  // what is done every ten minutes is in it once
	decisionWithin = 5 * time.Minute
	goneWithin     = 5 * time.Minute
)

// events is how many pods are changed to see what a change costs.
const events = 1000

// Options say how a benchmark runs.
type Options struct {
	Programs onlab.Programs
	// Dir is where labs and logs go.
	Dir string
	// Profile says that processor profiles of the start, of the time at rest, of changed and
	// of single pods are written beside the logs.
	Profile bool
	// Soon leaves out the time at rest, and waiting until no node is young. What is taken at
	// rest is then not taken off other figures.
	Soon bool
	// Starts is how often the start is measured, at least 1; the median counts.
	Starts int
}

// Measure makes a cluster of the size in a lab of its own and measures an engine on it.
func Measure(ctx context.Context, opts Options, engine string, size Size) (*Figures, error) {
	result := &Figures{Size: size, Engine: engine, Date: today()}
	err := onFleet(ctx, opts, engine, size, func(ctx context.Context, f *fleet, dir string) error {
		m := &measurement{fleet: f, dir: dir, opts: opts, result: *result}
		err := m.run(ctx)
		*result = m.result
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

func today() string { return time.Now().Format(time.DateOnly) }

// onFleet makes a cluster of the size in a lab of its own, and ends it when do is done. Logs
// go to a folder that is named after engine and size.
func onFleet(ctx context.Context, opts Options, engine string, size Size,
	do func(ctx context.Context, f *fleet, dir string) error,
) (err error) {
	dir := filepath.Join(opts.Dir, fmt.Sprintf("%s-%d", engine, size.Nodes))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	flags := []string{"--nodes", "0", "--default-node-pools", "None", "--node-monitor-grace-period", lostAfter.String()}
	l, err := onlab.Start(ctx, opts.Programs, filepath.Join(dir, "lab"), []byte(class), flags...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	f, err := newFleet(watching, l, size)
	if err != nil {
		return err
	}
	k, err := f.build(ctx, filepath.Join(dir, "setup.log"))
	if err != nil {
		return err
	}
	defer k.stop()
	return do(ctx, f, dir)
}

// measurement is one under way.
type measurement struct {
	*fleet
	dir        string // for logs and profiles
	opts       Options
	result     Figures
	controller *onlab.Controller
}

func (m *measurement) run(ctx context.Context) (err error) {
	if err := m.startOften(ctx); err != nil {
		return err
	}
	defer m.controller.Kill()
	steps := []func(context.Context) error{m.complete, m.idle, m.change, m.single, m.complete, m.decide}
	if m.opts.Soon {
		steps[1] = func(ctx context.Context) error { return pause(ctx, restFor) }
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startOften measures starts and leaves the controller of the last one running, without the
// pods that waited for it.
func (m *measurement) startOften(ctx context.Context) error {
	var times, cpu []time.Duration
	for i := range m.opts.Starts {
		if i > 0 {
			m.controller.Kill()
		}
		name := fmt.Sprint(latePool, "-", i)
		if err := m.start(ctx, name, filepath.Join(m.dir, fmt.Sprintf("controller-%d.log", i))); err != nil {
			return err
		}
		first, used := m.result.FirstClaim, m.result.StartCPU
		times, cpu = append(times, first), append(cpu, used)
		fmt.Fprintf(os.Stderr, "start %d: first NodeClaim after %.1f s, %.1f s of CPU\n", i+1, first.Seconds(), used.Seconds())
		if err := m.leave(ctx, name); err != nil {
			m.controller.Kill()
			return err
		}
	}
	slices.Sort(times)
	slices.Sort(cpu)
	m.result.FirstClaim, m.result.StartCPU = times[len(times)/2], cpu[len(cpu)/2]
	return nil
}

// start starts the controller beside pods that wait, and waits for a NodeClaim for them.
func (m *measurement) start(ctx context.Context, name, log string) error {
	if err := m.kube.Create(ctx, late(name, latePods)); err != nil {
		return err
	}
	if err := pause(ctx, restFor); err != nil { // the scheduler looks at them
		return err
	}
	began := time.Now()
	// What waits is more than the fleet, which may be as many machines as nap allows by itself.
	c, err := m.lab.Run(ctx, m.result.Engine, log, "--max-nodes=0")
	if err != nil {
		return err
	}
	m.controller = c
	profiled := m.profileStart(ctx)
	defer func() { <-profiled }()
	err = until(ctx, "a NodeClaim for pods that wait", planWithin, func() (bool, error) {
		n, err := m.lateClaims(ctx)
		return n > 0, err
	})
	if err == nil {
		m.result.FirstClaim = time.Since(began)
		m.result.StartCPU, err = c.CPU()
	}
	if err != nil {
		c.Kill()
	}
	return err
}

// startProfiled is how long the profile of the start is.
const startProfiled = 20 * time.Second

// profileStart writes a profile of the controller's processor time from the moment in which
// it serves profiles, if that is wanted. What it returns is closed when that is done.
func (m *measurement) profileStart(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		path, deadline := filepath.Join(m.dir, "start.pprof"), time.Now().Add(startProfiled)
		for m.opts.Profile && time.Now().Before(deadline) && ctx.Err() == nil {
			if m.controller.Profile(ctx, int(startProfiled.Seconds()), path) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // it does not serve yet
		}
	}()
	return done
}

// lateClaims counts the NodeClaims of the pods that waited.
func (m *measurement) lateClaims(ctx context.Context) (int, error) {
	var claims v1.NodeClaimList
	err := m.seen.List(ctx, &claims, client.MatchingLabels{v1.NodePoolLabelKey: latePool})
	return len(claims.Items), err
}

// leave removes a Deployment of pods that waited, and what was bought for them.
func (m *measurement) leave(ctx context.Context, name string) error {
	if err := m.kube.Delete(ctx, late(name, 0), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return err
	}
	return until(ctx, "the NodeClaims of pods that are gone, too", goneWithin, func() (bool, error) {
		err := m.kube.DeleteAllOf(ctx, &v1.NodeClaim{}, client.MatchingLabels{v1.NodePoolLabelKey: latePool})
		if err != nil {
			return false, err
		}
		n, err := m.lateClaims(ctx)
		return n == 0, err
	})
}

// idle measures while nothing changes but leases and no node is young.
func (m *measurement) idle(ctx context.Context) error {
	if err := pause(ctx, settleFor); err != nil {
		return err
	}
	youngest, err := m.youngest(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, max(0, youngFor+restFor-time.Since(youngest))); err != nil {
		return err
	}
	var took time.Duration
	err = m.profile(ctx, "idle", idleFor, func() (err error) { // what the heap's profiles take is not counted
		took, err = m.cpu(func() error { return pause(ctx, idleFor) })
		return err
	})
	if err != nil {
		return err
	}
	m.result.Idle = took.Seconds() / idleFor.Seconds()
	m.result.Memory, err = m.controller.Memory()
	return err
}

// youngest is when the youngest node was made.
func (m *measurement) youngest(ctx context.Context) (at time.Time, err error) {
	var nodes corev1.NodeList
	if err := m.seen.List(ctx, &nodes); err != nil {
		return at, err
	}
	for i := range nodes.Items {
		if made := nodes.Items[i].CreationTimestamp.Time; made.After(at) {
			at = made
		}
	}
	return at, nil
}

// change changes pods, and waits until the controller has digested it.
func (m *measurement) change(ctx context.Context) error {
	n := min(events, m.result.Pods)
	began := time.Now()
	var took time.Duration
	touch := func() error {
		err := each(ctx, n, func(ctx context.Context, i int) error {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: podName(i)}}
			return m.kube.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`)))
		})
		if err != nil {
			return err
		}
		return pause(ctx, restFor)
	}
	err := m.profile(ctx, "change", restFor+5*time.Second, func() (err error) {
		took, err = m.cpu(touch)
		return err
	})
	idle := time.Duration(m.result.Idle * float64(time.Since(began)))
	m.result.PerEvent = max(0, took-idle) / time.Duration(n)
	return err
}

// singles is how many Deployments of one pod are measured.
const singles = 5

// single creates Deployments of one pod, one after the other.
func (m *measurement) single(ctx context.Context) error {
	var times, cpu []time.Duration
	err := m.profile(ctx, "single", singles*8*time.Second, func() error {
		for i := range singles {
			took, used, err := m.onePod(ctx, fmt.Sprint("single-", i))
			if err != nil {
				return err
			}
			times, cpu = append(times, took), append(cpu, used)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(times)
	slices.Sort(cpu)
	m.result.OnePod, m.result.OnePodCPU = times[singles/2], cpu[singles/2]
	return nil
}

// onePod creates a Deployment of one pod and waits for its NodeClaim. Both are gone at the
// end. Names differ, since nap buys ever later for a workload whose machines do not come.
func (m *measurement) onePod(ctx context.Context, name string) (took, used time.Duration, err error) {
	claims, err := m.seen.GetInformer(ctx, &v1.NodeClaim{})
	if err != nil {
		return 0, 0, err
	}
	bought := make(chan time.Time, 1)
	handler, err := claims.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if c, ok := o.(*v1.NodeClaim); ok && c.Labels[v1.NodePoolLabelKey] == latePool { // those of before are gone
			select {
			case bought <- time.Now():
			default:
			}
		}
	}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, claims.RemoveEventHandler(handler)) }()
	used, err = m.cpu(func() error {
		began := time.Now()
		if err := m.kube.Create(ctx, late(name, 1)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(planWithin):
			return &lateError{"a NodeClaim for one pod", planWithin}
		case at := <-bought:
			took = at.Sub(began)
		}
		return pause(ctx, time.Second)
	})
	used = max(0, used-time.Duration(m.result.Idle*float64(took+time.Second)))
	if err != nil {
		return took, used, err
	}
	if err := m.leave(ctx, name); err != nil {
		return took, used, err
	}
	return took, used, pause(ctx, restFor/4)
}

// profile writes profiles of the controller if they are wanted: of its heap before and
// afterwards, and of its processor time for d while do runs.
func (m *measurement) profile(ctx context.Context, name string, d time.Duration, do func() error) error {
	if !m.opts.Profile {
		return do()
	}
	if err := m.controller.Heap(ctx, filepath.Join(m.dir, name+".heap.pprof")); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- m.controller.Profile(ctx, int(d.Seconds()), filepath.Join(m.dir, name+".pprof")) }()
	return errors.Join(do(), <-done, m.controller.Heap(ctx, filepath.Join(m.dir, name+".after.heap.pprof")))
}

// decide opens the budgets and waits for the first node that is disrupted. The controller
// is killed then, so that nothing of the fleet is moved.
func (m *measurement) decide(ctx context.Context) error {
	began := time.Now()
	took, err := m.cpu(func() error {
		if err := m.openBudgets(ctx); err != nil {
			return err
		}
		began = time.Now()
		err := until(ctx, "a node that is disrupted", decisionWithin, func() (bool, error) { return m.disrupted(ctx) })
		if err == nil {
			m.result.Decision = time.Since(began)
		}
		return err
	})
	m.result.DecisionCPU = took
	if late := (*lateError)(nil); errors.As(err, &late) {
		err = nil
	}
	if err == nil {
		m.result.Peak, err = m.controller.Peak()
	}
	return err
}

// disrupted reports whether some node is being disrupted.
func (m *measurement) disrupted(ctx context.Context) (bool, error) {
	var nodes corev1.NodeList
	if err := m.seen.List(ctx, &nodes); err != nil {
		return false, err
	}
	for i := range nodes.Items {
		for _, t := range nodes.Items[i].Spec.Taints {
			if t.Key == v1.DisruptedTaintKey {
				return true, nil
			}
		}
	}
	return false, nil
}

// cpu is the processor time that the controller takes while do runs.
func (m *measurement) cpu(do func() error) (time.Duration, error) { return cpuOf(m.controller, do) }

// cpuOf is the processor time that a controller takes while do runs.
func cpuOf(c *onlab.Controller, do func() error) (time.Duration, error) {
	before, err := c.CPU()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := c.CPU()
	return after - before, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// lateError says that something has not come about in time.
type lateError struct {
	what   string
	within time.Duration
}

func (e *lateError) Error() string { return fmt.Sprintf("%s: not within %s", e.what, e.within) }

// until waits until something is so, or fails with a lateError.
func until(ctx context.Context, what string, within time.Duration, done func() (bool, error)) error {
	late := time.After(within)
	for {
		if so, err := done(); so || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return &lateError{what, within}
		case <-time.After(200 * time.Millisecond):
		}
	}
}
