package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// notes are a source that remembers one sentence.
type notes struct {
	mu   sync.Mutex
	text string
}

func (n *notes) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = text
}

func (n *notes) Marshal() ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []byte(n.text), nil
}

func (n *notes) Unmarshal(text []byte) error {
	if string(text) == "garbage" {
		return errors.New("not mine")
	}
	n.say(string(text))
	return nil
}

func apiServer(t *testing.T, calls interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(calls).Build()
}

// run starts a publisher until stop is called.
func run(t *testing.T, p *Publisher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := p.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return func() { cancel(); group.Wait() }
}

func TestTrap5MemorySurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := apiServer(t, interceptor.Funcs{})
		start := func(n *notes) func() {
			return run(t, &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: n}, Clock: clock.RealClock{}})
		}
		stored := func() string {
			d, err := Read(t.Context(), kube)
			if err != nil {
				t.Fatal(err)
			}
			return d.Memory[MemoryRefusals]
		}
		first := &notes{}
		stop := start(first)
		for _, text := range []string{"D4s_v5 is sold out", "E4s_v5 too"} {
			first.say(text)
			time.Sleep(every + time.Second)
			if got := stored(); got != text {
				t.Errorf("the snapshot says %q, want %q", got, text)
			}
		}
		stop()
		second := &notes{}
		stop = start(second)
		if second.text != "E4s_v5 too" {
			t.Errorf("the next process remembers %q", second.text)
		}
		second.say("garbage")
		time.Sleep(every + time.Second)
		stop()
		third := &notes{}
		stop = start(third)
		if third.text != "" {
			t.Errorf("from what it cannot read the next process takes %q", third.text)
		}
		stop()
	})
}

// A snapshot is written when it says something new, at most every five seconds, and
// otherwise once in a minute, so that its time says that the controller lives.
func TestSnapshotIsWrittenOnChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int32
		kube := apiServer(t, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if _, is := o.(*v1alpha1.Snapshot); is {
					writes.Add(1)
				}
				return c.Update(ctx, o, opts...)
			},
		})
		n := &notes{}
		stop := run(t, &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: n}, Clock: clock.RealClock{}})
		time.Sleep(time.Hour)
		if n := writes.Load(); n < 58 || n > 60 {
			t.Errorf("%d writes in an hour of a snapshot that says the same, want one in a minute", n)
		}
		writes.Store(0)
		for i := range 60 {
			n.say(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		stop()
		if n := writes.Load(); n < 10 || n > 13 {
			t.Errorf("%d writes in a minute of changes, want one in five seconds", n)
		}
	})
}

// A controller that starts buys nothing until it has read its mode. That this has passed is
// told a second later, and not five.
func TestStartUpIsToldWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := apiServer(t, interceptor.Funcs{})
		var buying atomic.Value
		buying.Store("the mode has not been read yet")
		collect := func(_ context.Context, d *Document) error {
			d.Status.Health.Buying = buying.Load().(string)
			return nil
		}
		stop := run(t, &Publisher{Reader: kube, Writer: kube, Collect: collect, Clock: clock.RealClock{}})
		defer stop()
		told := func(want string) {
			t.Helper()
			if d, err := Read(t.Context(), kube); err != nil || d.Status.Health.Buying != want {
				t.Errorf("%v, the snapshot says %q, want %q", err, d.Status.Health.Buying, want)
			}
		}
		told("the mode has not been read yet")
		buying.Store("")
		time.Sleep(startUpEvery + time.Millisecond)
		told("")
		buying.Store("mode Manual") // later it is told with all else
		time.Sleep(startUpEvery + time.Millisecond)
		told("")
		time.Sleep(every)
		told("mode Manual")
	})
}

// A crash between any two writes leaves a snapshot that can be read, also where the controller
// that crashes has not written yet, and whichever set of shards the one before wrote last.
func TestSnapshotIsWholeAfterCrashAtAnyWrite(t *testing.T) {
	for i := range 18 {
		crash, written := i%6, 2+i/12
		writes, crashed := 0, false
		fail := func() error {
			if writes++; crashed && writes > crash {
				return errors.New("crashed")
			}
			return nil
		}
		kube := apiServer(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := fail(); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := fail(); err != nil {
					return err
				}
				return c.Update(ctx, o, opts...)
			},
		})
		n := &notes{text: noise(t, mostShard+1000)} // two shards
		p := &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: n}, Clock: clock.RealClock{}}
		for range written {
			if err := p.publish(t.Context()); err != nil {
				t.Fatal(err)
			}
			n.text += "."
		}
		if i >= 6 { // by another controller from here on
			p = &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: &notes{}}, Clock: clock.RealClock{}}
			if err := p.restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Memory[MemoryRefusals] = n
		}
		before, after := n.text[:len(n.text)-1], n.text+"!"
		n.text, writes, crashed = after, 0, true
		err := p.publish(t.Context())
		d, readErr := Read(t.Context(), kube)
		if readErr != nil {
			t.Fatalf("after %d writes: %v", crash, readErr)
		}
		if got := d.Memory[MemoryRefusals]; err != nil && got != before || err == nil && got != after {
			t.Errorf("after %d writes (%v) the snapshot has %d bytes", crash, err, len(got))
		}
	}
}

// A new leader that has nothing new to say writes the same shards once more, beside those that are
// there. The snapshot can be read then, also where it crashes at any write, and the next one before
// it has written the Snapshot.
func TestSnapshotIsWholeWhereANewLeaderRepeatsIt(t *testing.T) {
	for i := range 8 {
		left := 100 // writes until the crash
		fail := func() error {
			if left--; left < 0 {
				return errors.New("crashed")
			}
			return nil
		}
		kube := apiServer(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := fail(); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := fail(); err != nil {
					return err
				}
				return c.Update(ctx, o, opts...)
			},
		})
		said := noise(t, mostShard+1000) // two shards
		for leader, writes := range []int{100, i % 4, 2} {
			n := &notes{text: said}
			if leader > 0 {
				n.text = ""
			}
			p := &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: n}, Clock: clock.RealClock{}}
			if err := p.restore(t.Context()); err != nil || n.text != said {
				t.Fatalf("%d: leader %d remembers %d bytes of %d, %v", i, leader, len(n.text), len(said), err)
			}
			news := said
			if leader == 2 {
				news += "!"
			}
			left = writes
			if leader == 0 && i >= 4 { // the other set of shards is the one that is read
				n.text = "before"
				if err := p.publish(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			n.text = news
			err := p.publish(t.Context())
			d, readErr := Read(t.Context(), kube)
			if readErr != nil {
				t.Fatalf("%d: after leader %d and %d writes: %v", i, leader, writes, readErr)
			}
			if got := d.Memory[MemoryRefusals]; got != said && (err != nil || got != news) {
				t.Errorf("%d: after leader %d (%v) the snapshot has %d bytes", i, leader, err, len(got))
			}
		}
	}
}

// noise is text of at least so many bytes once it is compressed.
func noise(t *testing.T, n int) string {
	t.Helper()
	raw := make([]byte, n)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

func TestSnapshotStaysWithinItsBounds(t *testing.T) {
	d := &Document{}
	for i := range 700 {
		d.Verdicts = append(d.Verdicts, Verdict{Pods: []string{fmt.Sprint(i)}, Why: noise(t, 8<<10), Details: []string{"one more thing"}})
	}
	for i := range 30_000 {
		name := fmt.Sprintf("ns/pod-%d", i)
		d.Status.Pending = append(d.Status.Pending, v1alpha1.PendingWorkload{Workload: name, Pods: 1, Pod: name, Message: "why"})
	}
	data, err := pack(d)
	if err != nil {
		t.Fatal(err)
	}
	parts := split(data)
	if len(parts) > mostShards {
		t.Errorf("%d shards, allowed are %d", len(parts), mostShards)
	}
	for _, p := range parts {
		if len(p) > mostShard {
			t.Errorf("a shard of %d bytes", len(p))
		}
	}
	if back, err := unpack(data); err != nil || len(back.Verdicts) == 0 || len(back.Verdicts) == len(d.Verdicts) {
		t.Errorf("unpacked: %v", err)
	}
	head, err := shorten(d.Status)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(head)
	if err != nil || len(text) > mostObject {
		t.Errorf("the object has %d bytes, %v", len(text), err)
	}
	if got := len(head.Pending) + int(head.Omitted["pending"]); got != 30_000 || len(head.Pending) == 0 {
		t.Errorf("%d entries and %d omitted", len(head.Pending), head.Omitted["pending"])
	}
}

func TestReadOfOtherFormNamesBoth(t *testing.T) {
	kube := apiServer(t, interceptor.Funcs{})
	if _, err := Read(t.Context(), kube); !errors.Is(err, ErrNone) {
		t.Errorf("without a snapshot: %v", err)
	}
	other := &v1alpha1.Snapshot{Status: v1alpha1.SnapshotStatus{Form: 7}}
	other.Name = v1alpha1.SnapshotName
	if err := kube.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), kube); err == nil || !strings.Contains(err.Error(), "is of form 7, and this version of nap reads form 1") {
		t.Errorf("got %v", err)
	}
}

// What Azure has refused is forgotten once where the Snapshot's annotation asks for it, and
// the annotation is gone.
func TestRetryForgetsWhatIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := apiServer(t, interceptor.Funcs{})
		var asked []string
		stop := run(t, &Publisher{
			Reader: kube, Writer: kube, Clock: clock.RealClock{}, Memory: map[string]Source{MemoryRefusals: &notes{}},
			Forget: func(_ context.Context, names []string) int { asked = append(asked, names...); return len(names) },
		})
		var head v1alpha1.Snapshot
		name := client.ObjectKey{Name: v1alpha1.SnapshotName}
		if err := kube.Get(t.Context(), name, &head); err != nil {
			t.Fatal(err)
		}
		head.Annotations = map[string]string{v1beta1.AnnotationRetry: "Standard_D4s_v5,standardDSv5Family"}
		if err := kube.Update(t.Context(), &head); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second)
		stop()
		if got := strings.Join(asked, " "); got != "Standard_D4s_v5 standardDSv5Family" {
			t.Errorf("forgotten was %q", got)
		}
		if err := kube.Get(t.Context(), name, &head); err != nil || head.Annotations[v1beta1.AnnotationRetry] != "" {
			t.Errorf("annotations %v, error %v", head.Annotations, err)
		}
	})
}

// Moves are told of while they are under way and after, the last five.
func TestMovesAreToldUnderWayAndAfter(t *testing.T) {
	m := &Moves{}
	m.UnderWay([]v1alpha1.Move{{ID: "now"}})
	for i := range 7 {
		m.Ended(&v1alpha1.Move{ID: fmt.Sprint(i)})
	}
	var s v1alpha1.SnapshotStatus
	m.fill(&s)
	if len(s.Moves) != 1 || s.Moves[0].ID != "now" || len(s.LastMoves) != mostEnded || s.LastMoves[0].ID != "6" {
		t.Errorf("got %v and %v", s.Moves, s.LastMoves)
	}
}

// A write that fails is made again though nothing has changed since: what Azure has refused
// once is not lost because the API server was away at that moment.
func TestFailedWriteIsMadeAgain(t *testing.T) {
	for failing := range 4 { // both writes of a first snapshot, and both of one that replaces it
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := 0
				attempt := func(write func() error) error {
					if writes++; writes-1 == failing {
						return errors.New("the API server is away")
					}
					return write()
				}
				kube := apiServer(t, interceptor.Funcs{
					Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						return attempt(func() error { return c.Create(ctx, o, opts...) })
					},
					Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
						return attempt(func() error { return c.Update(ctx, o, opts...) })
					},
				})
				n := &notes{}
				stop := run(t, &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: n}, Clock: clock.RealClock{}})
				defer stop()
				for _, text := range []string{"D4s_v5 is sold out", "E4s_v5 too"} {
					n.say(text)
					time.Sleep(2*every + time.Second)
					if d, err := Read(t.Context(), kube); err != nil || d.Memory[MemoryRefusals] != text {
						t.Errorf("the snapshot says %+v, %v, want %q", d, err, text)
					}
				}
				if writes <= failing {
					t.Errorf("%d writes: none failed", writes)
				}
			})
		})
	}
}

func TestRestoredOnlyWhenMemoryIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		kube := apiServer(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if refused.Load() {
					return apierrors.NewServiceUnavailable("starting")
				}
				return c.List(ctx, list, opts...)
			},
		})
		p := &Publisher{Reader: kube, Writer: kube, Memory: map[string]Source{MemoryRefusals: &notes{}}, Clock: clock.RealClock{}}
		stop := run(t, p)
		defer stop()
		if p.Restored() {
			t.Error("restored, though nothing could be read")
		}
		refused.Store(false)
		time.Sleep(every + time.Second)
		if !p.Restored() {
			t.Error("not restored, though all can be read")
		}
	})
}
