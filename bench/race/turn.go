package race

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/bench/onlab"
)

// Floor is what the control plane takes by itself: the same pods, on nodes that are
// there already, without a controller.
const Floor = "floor"

// Result is what one turn of an engine came to. Times count from the moment in which
// the work was given.
type Result struct {
	Course, Engine string
	// FirstClaim and LastClaim are when NodeClaims came, LastNode when the last of their
	// nodes could take pods, 0 if none was bought; AllRunning is when all pods ran, for a
	// course that takes pods away when the last NodeClaim within freeFor came or went, and for
	// a rollout when it was done.
	FirstClaim, LastClaim, LastNode, AllRunning time.Duration
	// LongestWait is the longest that a pod waited from its creation until it was bound, or
	// until the end.
	LongestWait time.Duration
	// Bought is the number of NodeClaims, Machines and Cost ($/h, with their disks) what
	// was there at the end.
	Bought, Machines int
	Cost             float64
	// CPU is the controller's processor time from the beginning until settled after the
	// end, Peak its most memory in bytes since its start.
	CPU  time.Duration
	Peak int64
	// Requests are the controller's to the API server, AzureCalls those to Azure.
	Requests, AzureCalls int
	// Profile is for how many seconds of processor time the controller had each purpose; nil
	// where it was not profiled.
	Profile map[string]float64 `json:",omitempty"`
}

// settled is how long after the end the controller's processor time still counts: what
// it has bought is looked after.
const settled = 10 * time.Second

// restAfter is how long no NodeClaim may come or go for a fleet at rest.
const restAfter = 30 * time.Second

// freeFor is how long a course that frees room is measured, whatever the engine does: an
// engine that has not begun is at rest, too.
const freeFor = 3 * time.Minute

// waveAfter is how long after one wave the next one comes.
const waveAfter = 10 * time.Second

// The longest that a step may take.
const (
	runWithin  = 5 * time.Minute
	restWithin = 4 * time.Minute
	goneWithin = 5 * time.Minute
)

// Options are what a turn may do besides.
type Options struct {
	// Dir is where logs and profiles go.
	Dir string
	// Profile is for how many seconds the controller is profiled from the beginning; 0
	// for none.
	Profile int
	// Turn tells the files of turns apart.
	Turn int
}

// Turn lets one engine do a course, and leaves an empty lab.
func (l *Lab) Turn(ctx context.Context, course *Course, engine string, opts Options) (result *Result, err error) {
	name := filepath.Join(opts.Dir, fmt.Sprintf("%s-%s-%d", course.Name, engine, opts.Turn))
	timeline, err := os.Create(name + ".tsv")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, timeline.Close()) }()
	c, err := l.Run(ctx, engine, name+".log", "--detailed-metrics")
	if err != nil {
		return nil, err
	}
	t := &turn{Lab: l, course: course, controller: c, timeline: timeline, result: &Result{Course: course.Name, Engine: engine}}
	if t.kube, err = kubernetes.NewForConfig(l.Config); err != nil {
		return nil, err
	}
	err = t.prepare(ctx)
	profiled := make(chan error, 1)
	if opts.Profile > 0 && err == nil {
		go func() { profiled <- c.Profile(ctx, opts.Profile, name+".pprof") }()
	} else {
		profiled <- nil
	}
	if err == nil {
		err = t.run(ctx)
	}
	err = errors.Join(err, <-profiled)
	if err == nil && opts.Profile > 0 {
		t.result.Profile, err = Shares(name + ".pprof")
	}
	err = errors.Join(err, t.clear(ctx))
	peak, stopped := c.Stop()
	t.result.Peak = peak
	return t.result, errors.Join(err, stopped)
}

// turn is a turn under way.
type turn struct {
	*Lab
	course     *Course
	controller *onlab.Controller
	kube       kubernetes.Interface
	// timeline is told how the work goes on.
	timeline io.Writer
	result   *Result
}

// prepare brings about what is there before the course begins.
func (t *turn) prepare(ctx context.Context) error {
	if err := t.addTenants(ctx); err != nil {
		return err
	}
	if t.course.Daemon {
		if _, err := t.kube.AppsV1().DaemonSets(metav1.NamespaceDefault).Create(ctx, daemon(), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := t.create(ctx, t.course.Before); err != nil {
		return err
	}
	want := podsOf(t.course.Before)
	if err := t.observer.until(ctx, "all pods run that run before", runWithin, func(s seen) bool { return s.running >= want }); err != nil {
		return err
	}
	if want > 0 {
		return t.observer.until(ctx, "at rest", restWithin, func(s seen) bool { return s.quiet >= restAfter })
	}
	// A controller that has just started is still busy with itself.
	return sleep(ctx, 3*time.Second)
}

// run does the course and measures it.
func (t *turn) run(ctx context.Context) error {
	before, err := t.count(ctx)
	if err != nil {
		return err
	}
	t.observer.reset()
	began := time.Now()
	timed, stop := context.WithCancel(ctx)
	defer stop()
	go t.observer.timeline(timed, began, t.timeline)
	if err := t.work(ctx, began); err != nil {
		return err
	}
	// What comes later is bought for no pod that waits, but to save money.
	bought := t.observer.look()
	if err := sleep(ctx, settled); err != nil {
		return err
	}
	after, err := t.count(ctx)
	if err != nil {
		return err
	}
	r, s := t.result, t.observer.look()
	r.CPU, r.Requests, r.AzureCalls = after.cpu-before.cpu, after.requests-before.requests, after.azure-before.azure
	r.LongestWait = s.longestWait
	if r.Bought = s.made; bought.made > 0 {
		r.FirstClaim, r.LastClaim, r.LastNode = s.first.Sub(began), bought.last.Sub(began), s.lastReady.Sub(began)
	}
	machines, err := t.Azure.Machines(ctx)
	if err != nil {
		return err
	}
	r.Machines = len(machines)
	for _, m := range machines {
		r.Cost += m.DollarsPerHour
	}
	return nil
}

// counted are figures that only grow.
type counted struct {
	cpu             time.Duration
	requests, azure int
}

func (t *turn) count(ctx context.Context) (c counted, err error) {
	if c.cpu, err = t.controller.CPU(); err != nil {
		return c, err
	}
	if c.requests, err = t.controller.Requests(ctx); err != nil {
		return c, err
	}
	stats, err := t.Azure.Stats(ctx)
	for name, n := range stats {
		if strings.HasPrefix(name, "calls ") {
			c.azure += int(n)
		}
	}
	return c, err
}

// clear takes everything away and waits until the controller has, too.
func (t *turn) clear(ctx context.Context) error {
	if err := t.Lab.delete(ctx, t.kube); err != nil {
		return err
	}
	err := t.observer.until(ctx, "empty", goneWithin, func(s seen) bool { return s.pods == 0 && s.claims == 0 })
	return errors.Join(err, t.removeTenants(ctx))
}

// delete deletes the course's pods.
func (l *Lab) delete(ctx context.Context, kube kubernetes.Interface) error {
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	apps := kube.AppsV1()
	return errors.Join(
		apps.Deployments(metav1.NamespaceDefault).DeleteCollection(ctx, opts, metav1.ListOptions{}),
		apps.DaemonSets(metav1.NamespaceDefault).DeleteCollection(ctx, opts, metav1.ListOptions{}),
		kube.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, opts, metav1.ListOptions{LabelSelector: bareLabel}))
}

// Floor measures the course's pods on nodes that are there: an engine makes them, is
// stopped, and the pods come again. It ends when all but a fiftieth of them run: the
// scheduler packs less tightly than the plan, and may leave a few without room.
func (l *Lab) Floor(ctx context.Context, course *Course, opts Options) (*Result, error) {
	c, err := l.Run(ctx, "nap", filepath.Join(opts.Dir, course.Name+"-floor.log"), "--detailed-metrics")
	if err != nil {
		return nil, err
	}
	t := &turn{Lab: l, course: course, controller: c, result: &Result{Course: course.Name, Engine: Floor}}
	if t.kube, err = kubernetes.NewForConfig(l.Config); err != nil {
		return nil, err
	}
	if err := errors.Join(t.prepare(ctx), t.add(ctx)); err != nil {
		return nil, err
	}
	want := podsOf(course.Added)
	running := func(s seen) bool { return s.running >= want }
	if err := l.observer.until(ctx, "all pods run", runWithin, running); err != nil {
		return nil, err
	}
	if _, err := c.Stop(); err != nil {
		return nil, err
	}
	if err := l.delete(ctx, t.kube); err != nil {
		return nil, err
	}
	if err := l.observer.until(ctx, "without pods", goneWithin, func(s seen) bool { return s.pods == 0 }); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := t.add(ctx); err != nil {
		return nil, err
	}
	again := func(s seen) bool { return s.running*50 >= want*49 }
	if err := l.observer.until(ctx, "nearly all pods run again", runWithin, again); err != nil {
		return nil, err
	}
	t.result.AllRunning = time.Since(began)
	if t.controller, err = l.Run(ctx, "nap", filepath.Join(opts.Dir, course.Name+"-floor.log"), "--detailed-metrics"); err != nil {
		return nil, err
	}
	err = t.clear(ctx)
	_, stopped := t.controller.Stop()
	return t.result, errors.Join(err, stopped)
}
