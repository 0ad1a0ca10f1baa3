package arm

import (
	"container/heap"
	"slices"
	"sync"
	"time"
)

// TaskKind says what happens when a task falls due. Each kind has one handler,
// which its provider registers with [Tasks.On].
type TaskKind string

// taskFault: a fault has lasted its duration.
const taskFault TaskKind = "fault"

// Task is something that happens later. Tasks are data, not closures, so that
// a restarted server carries on with them.
type Task struct {
	At    time.Time `json:"at"`
	Order uint64    `json:"order"` // ties run in the order in which they were planned
	Kind  TaskKind  `json:"kind"`
	Key   string    `json:"key"`            // the resource, or the fault's ID
	Op    string    `json:"op,omitempty"`   // the operation that ends with it
	Life  string    `json:"life,omitempty"` // the vmId it is meant for: a namesake made later is another machine
}

// taskQueue is a heap by time.
type taskQueue []Task

func (q taskQueue) Len() int { return len(q) }
func (q taskQueue) Less(i, j int) bool {
	if !q[i].At.Equal(q[j].At) {
		return q[i].At.Before(q[j].At)
	}
	return q[i].Order < q[j].Order
}
func (q taskQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *taskQueue) Push(x any)   { *q = append(*q, x.(Task)) }
func (q *taskQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Tasks is what happens later: a heap by time and a timer that waits for its
// first element.
type Tasks struct {
	lock      sync.Locker // of the subscription; the timer takes it
	clock     Clock
	ids       *IDs
	changed   func() // called after a task was planned or has run
	delivered func() // called without the lock after tasks have run
	run       map[TaskKind]func(Task)
	queue     taskQueue
	timer     *time.Timer // nil until the first task is planned
	stopped   bool        // nothing moves any more
}

// On registers what a kind of task does. It runs with the lock held.
func (t *Tasks) On(kind TaskKind, f func(Task)) { t.run[kind] = f }

// After plans a task; the delay is that of the real Azure.
func (t *Tasks) After(delay time.Duration, task Task) {
	t.Plan(t.clock.Now().Add(t.clock.Scaled(delay)), task)
}

// Plan puts a task into the queue and sets the timer.
func (t *Tasks) Plan(at time.Time, task Task) {
	task.At = at
	task.Order = t.ids.Next()
	heap.Push(&t.queue, task)
	t.Arm()
	t.changed()
}

// Arm sets the timer to the first task.
func (t *Tasks) Arm() {
	if len(t.queue) == 0 || t.stopped {
		return
	}
	wait := time.Until(t.queue[0].At)
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.runDue)
		return
	}
	t.timer.Reset(wait)
}

// Stop ends the timer: no task runs any more.
func (t *Tasks) Stop() {
	t.stopped = true
	if t.timer != nil {
		t.timer.Stop()
	}
}

// runDue does what is due. It runs on the timer's goroutine.
func (t *Tasks) runDue() {
	t.lock.Lock()
	for !t.stopped && len(t.queue) > 0 && !t.queue[0].At.After(t.clock.Now()) {
		task := heap.Pop(&t.queue).(Task)
		t.run[task.Kind](task)
		t.changed()
	}
	t.Arm()
	t.lock.Unlock()
	t.delivered()
}

// Has says whether a task waits for a resource.
func (t *Tasks) Has(key string) bool {
	return slices.ContainsFunc(t.queue, func(task Task) bool { return task.Key == key })
}

// Snapshot copies the tasks that wait, as a heap.
func (t *Tasks) Snapshot() []Task { return slices.Clone(t.queue) }

// Restore takes the tasks of a snapshot; Arm starts them.
func (t *Tasks) Restore(tasks []Task) { t.queue = tasks }
