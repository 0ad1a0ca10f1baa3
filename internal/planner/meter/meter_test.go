package meter

import (
	"reflect"
	"sync"
	"testing"
	"time"
)

func TestMeterWithoutClockCountsSteps(t *testing.T) {
	m := New(100*StepTime, Clock{})
	if m.Spend(99); m.Over() {
		t.Error("over after 99 of 100 steps")
	}
	if m.Spend(1); !m.Over() {
		t.Error("not over after 100 of 100 steps")
	}
}

func TestMeterWithoutBudgetIsOver(t *testing.T) {
	if m := New(0, NewClock(func() time.Duration { return 0 })); !m.Over() || m.Limited() {
		t.Error("there is time without a budget")
	}
}

func TestMeterUntilDividesBudgetIntoStages(t *testing.T) {
	m := New(100*StepTime, Clock{})
	m.Until(0.4)
	if m.Spend(40); !m.Over() {
		t.Error("the stage goes on after 40 of 40 steps")
	}
	m.Until(1)
	if m.Over() {
		t.Error("the next stage is over before it began")
	}
	if m.Spend(60); !m.Over() {
		t.Error("the search goes on after all of its steps")
	}
}

func TestMeterUntilLooksAtClockAtOnce(t *testing.T) {
	now := time.Duration(0)
	m := New(time.Second, NewClock(func() time.Duration { return now }))
	m.Spend(askEvery)
	if m.Over() {
		t.Fatal("over at the start")
	}
	now = time.Second / 2
	if m.Until(0.4); !m.Over() {
		t.Error("the stage goes on after half of the time, it has 0.4 of it")
	}
}

// search reads the clock as a search does: by itself, and by two workers with meters.
func search(c Clock) (steps [2]int64, late int, read time.Duration) {
	m := New(time.Second, c.Child("packing"))
	side := m.Fork()
	var group sync.WaitGroup
	for i, worker := range []*Meter{m, side} {
		group.Go(func() {
			for !worker.Over() {
				worker.Spend(1000)
			}
			steps[i] = worker.Steps
		})
	}
	group.Wait()
	for range 50 {
		if c.Late(2 * time.Second) {
			late++
		}
		read += c.Now()
	}
	return steps, late, read
}

func TestReplayGivesSameAnswers(t *testing.T) {
	var mu sync.Mutex
	now := time.Duration(0)
	tick := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now += 37 * time.Millisecond
		return now
	}
	c := Recording(tick)
	steps, late, read := search(c)
	record, ok := c.Record()
	if !ok || late == 0 || late == 50 || steps[0] == 0 || len(record.Stops) != 2 || len(record.Late) != 1 {
		t.Fatalf("steps %v, late %d times, record %+v: the search does not read the clock", steps, late, record)
	}
	again, lateAgain, readAgain := search(Replaying(record))
	if again != steps || lateAgain != late || readAgain != read {
		t.Errorf("got steps %v, %d times late, readings %s; want %v, %d, %s", again, lateAgain, readAgain, steps, late, read)
	}
	if copied, _ := Replaying(record).Record(); !reflect.DeepEqual(copied, record) {
		t.Errorf("the record of a replay is %+v, want %+v", copied, record)
	}
}

func TestPatientClockLetsStepsMeasureTheBudget(t *testing.T) {
	now := 20 * time.Second
	c := Recording(func() time.Duration { return now }).Within(CutLimits{Patience: 40})
	m := New(time.Second, c.Child("packing"))
	if m.Spend(m.Limit - 1); m.Over() {
		t.Error("20 times the budget end a search that waits for 40")
	}
	if m.Spend(1); !m.Over() {
		t.Error("the steps of the budget are spent and the search goes on")
	}
	c.Work().Spend(int64(time.Second/StepTime) / 2)
	if got := c.Now(); got != time.Second/2 {
		t.Errorf("half of the budget's work counts as %s", got)
	}
	if c.Late(time.Second) || !c.Late(time.Second/2) {
		t.Error("work does not say whether it is late")
	}
	if r, _ := c.Record(); len(r.Late)+len(r.Stops)+len(r.Readings) > 0 {
		t.Errorf("time has had a part in it: %+v", r)
	}
	now = 41 * time.Second
	if m = New(time.Second, c.Child("packing")); !c.Late(time.Second) || m.Over() {
		t.Error("late after 41 times the budget, and a meter looks at the clock when something has been done")
	}
	if m.Spend(askEvery); !m.Over() {
		t.Error("41 times the budget do not end the search")
	}
}

func TestClockNeverStopsMeterBelowItsFloor(t *testing.T) {
	m := New(time.Second, NewClock(func() time.Duration { return time.Hour }).Within(CutLimits{Floor: 0.25}))
	if m.Spend(m.Limit/4 - 1); m.Over() {
		t.Error("over before a quarter of the steps")
	}
	if m.Spend(askEvery); !m.Over() {
		t.Error("the clock does not stop the meter above its floor")
	}
	if !m.Clocked() {
		t.Error("no clock stops a meter that has one")
	}
}
