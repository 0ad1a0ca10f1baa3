package planner_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// stumbling is a clock that jumps ahead by up to twice a step at each look, so
// that no two searches are cut at the same points.
func stumbling(step time.Duration, seed uint64) func() time.Duration {
	var now atomic.Int64
	var looks atomic.Uint64
	return func() time.Duration {
		jump := rand.New(rand.NewPCG(seed, looks.Add(1))).Int64N(int64(2 * step))
		return time.Duration(now.Add(jump))
	}
}

// TestReplayRepeatsPlanThatClockCut: a plan that a clock cut somewhere is made again, byte
// for byte, from the problem and the record in the plan, on any number of cores.
func TestReplayRepeatsPlanThatClockCut(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	distinct := map[string]bool{}
	for _, name := range []string{"1000 pods of 100 deployments", "300 pods, 2 machines", "pods that refuse all others"} {
		p := inputs()[name](rand.New(rand.NewPCG(1, 2)))
		for i, step := range []time.Duration{200 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			p.Policy = model.Policy{Budget: 50 * time.Millisecond, Seed: uint64(i), Elapsed: stumbling(step, uint64(i))}
			cut := planner.Solve(p)
			if cut.Stats.Replay == nil {
				t.Fatalf("%s: the plan has no record", name)
			}
			text, err := json.Marshal(cut.Stats.Replay)
			if err != nil {
				t.Fatal(err)
			}
			distinct[string(text)] = true
			p.Policy = model.Policy{Replay: &model.Replay{}}
			if err := json.Unmarshal(text, p.Policy.Replay); err != nil {
				t.Fatal(err)
			}
			runtime.GOMAXPROCS(1 + i)
			again := planner.Solve(p)
			want, got := mustMarshal(t, cut), mustMarshal(t, again)
			if want != got || !reflect.DeepEqual(cut.NewNodes, again.NewNodes) {
				t.Errorf("%s, clock %s: replay of %s gives another plan: cost %s, bound %s, %d nodes; want %s, %s, %d", name, step, text,
					again.Cost, again.LowerBound, len(again.NewNodes), cut.Cost, cut.LowerBound, len(cut.NewNodes))
			}
		}
	}
	if len(distinct) < 6 {
		t.Errorf("only %d different records: the clock hardly cuts anything", len(distinct))
	}
}

// TestReplayIsAbsentWithoutClock: where no clock decides, the problem alone replays a plan.
func TestReplayIsAbsentWithoutClock(t *testing.T) {
	p := inputs()["100 pods of 20 deployments"](rand.New(rand.NewPCG(1, 2)))
	p.Policy.Budget = time.Millisecond
	if r := planner.Solve(p).Stats.Replay; r != nil {
		t.Errorf("a plan by steps has the record %+v", r)
	}
	p.Policy.Budget, p.Policy.Elapsed = 0, func() time.Duration { return time.Hour }
	if r := planner.Solve(p).Stats.Replay; r != nil {
		t.Errorf("a plan without a budget has the record %+v", r)
	}
}

func mustMarshal(t *testing.T, plan *model.Plan) string {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A plan that was made in parts is made again in the same parts.
func TestReplayRepeatsPlanInParts(t *testing.T) {
	p := planner.TenantsWaiting(4)
	p.Policy = model.Policy{Budget: 50 * time.Millisecond, Seed: 3, Elapsed: stumbling(time.Second, 4)}
	cut := planner.SolveInParts(p)
	replay := cut.Stats.Replay
	if replay == nil || len(replay.Parts) != 4 || !replay.Cut() {
		t.Fatalf("the plan was not made in parts, or not cut: %v", replay)
	}
	repeats(t, p, cut, planner.SolveInParts)
}

// repeats makes a plan again by its record, as a file has it.
func repeats(t *testing.T, p *model.Problem, cut *model.Plan, solve func(*model.Problem) *model.Plan) {
	t.Helper()
	text, err := json.Marshal(cut.Stats.Replay)
	if err != nil {
		t.Fatal(err)
	}
	p.Policy = model.Policy{Replay: &model.Replay{}}
	if err := json.Unmarshal(text, p.Policy.Replay); err != nil {
		t.Fatal(err)
	}
	again := solve(p)
	if mustMarshal(t, cut) != mustMarshal(t, again) || !reflect.DeepEqual(cut.NewNodes, again.NewNodes) {
		t.Errorf("got another plan: cost %s, bound %s, want %s, %s", again.Cost, again.LowerBound, cut.Cost, cut.LowerBound)
	}
}
