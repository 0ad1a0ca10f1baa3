package armsim

import (
	"container/heap"
	"time"
)

// taskKind says what happens when a task falls due.
type taskKind string

const (
	taskVMCreated  taskKind = "vm.created"  // the create operation succeeds
	taskVMFailed   taskKind = "vm.failed"   // the create operation fails for want of capacity
	taskVMBooted   taskKind = "vm.booted"   // the kubelet would start now
	taskVMDeleted  taskKind = "vm.deleted"  // the delete operation ends
	taskVMWarn     taskKind = "vm.warn"     // a spot machine gets its notice
	taskVMEvicted  taskKind = "vm.evicted"  // the notice is over
	taskNICDeleted taskKind = "nic.deleted" // the delete operation ends
	taskOperation  taskKind = "operation"   // nothing but the operation ends
	taskFault      taskKind = "fault"       // a fault has lasted its duration
)

// task is something that happens later. Tasks are data, not closures, so that
// a restarted server carries on with them.
type task struct {
	At    time.Time `json:"at"`
	Order uint64    `json:"order"` // ties run in the order in which they were planned
	Kind  taskKind  `json:"kind"`
	Key   string    `json:"key"`            // the resource, or the fault's ID
	Op    string    `json:"op,omitempty"`   // the operation that ends with it
	Life  string    `json:"life,omitempty"` // the vmId it is meant for: a namesake made later is another machine
}

// heldTask waits until the fault that holds it is removed.
type heldTask struct {
	Fault string `json:"fault"`
	Task  task   `json:"task"`
}

// taskQueue is a heap by time.
type taskQueue []task

func (q taskQueue) Len() int { return len(q) }
func (q taskQueue) Less(i, j int) bool {
	if !q[i].At.Equal(q[j].At) {
		return q[i].At.Before(q[j].At)
	}
	return q[i].Order < q[j].Order
}
func (q taskQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *taskQueue) Push(x any)   { *q = append(*q, x.(task)) }
func (q *taskQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// after plans a task; the delay is that of the real Azure.
func (s *Server) after(delay time.Duration, t task) {
	s.plan(s.now().Add(s.scaled(delay)), t)
}

// plan puts a task into the queue and sets the timer.
func (s *Server) plan(at time.Time, t task) {
	t.At = at
	t.Order = s.st.next()
	heap.Push(&s.st.Tasks, t)
	s.arm()
	s.dirty()
}

// arm sets the timer to the first task.
func (s *Server) arm() {
	if len(s.st.Tasks) == 0 || s.closed {
		return
	}
	wait := time.Until(s.st.Tasks[0].At)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.runTasks)
		return
	}
	s.timer.Reset(wait)
}

// runTasks does what is due. It runs on the timer's goroutine.
func (s *Server) runTasks() {
	s.mu.Lock()
	for !s.closed && len(s.st.Tasks) > 0 && !s.st.Tasks[0].At.After(s.now()) {
		s.run(heap.Pop(&s.st.Tasks).(task))
		s.dirty()
	}
	s.arm()
	s.mu.Unlock()
	s.deliver()
}

// run does one task. A task whose resource is gone has nothing left to do.
func (s *Server) run(t task) {
	if t.Kind == taskFault {
		s.removeFault(t.Key)
		return
	}
	r := s.st.Resources[t.Key]
	if r != nil && r.VM != nil && t.Life != "" && t.Life != r.VM.ID {
		r = nil
	}
	switch {
	case r == nil:
		s.finish(t.Op, nil)
	case t.Kind == taskOperation:
		s.finish(t.Op, s.settled(r))
	case t.Kind == taskVMCreated:
		s.vmCreated(r, t.Op)
	case t.Kind == taskVMFailed:
		s.vmFailed(r, t.Op)
	case t.Kind == taskVMBooted:
		s.vmBooted(r)
	case t.Kind == taskVMDeleted:
		s.vmDeleted(r, "vm.deleted")
		s.finish(t.Op, nil)
	case t.Kind == taskVMWarn:
		s.vmWarn(r)
	case t.Kind == taskVMEvicted:
		s.vmEvicted(r)
	case t.Kind == taskNICDeleted:
		s.nicDeleted(r)
		s.finish(t.Op, nil)
	}
}
