package decisions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/differential"
	"github.com/nodeautoprovision/nap/bench/fleets"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The work that a decision may take, counted in the steps that a machine with two
// cores does in about that time.
const (
	clusterEffort  = 20 * time.Millisecond
	workloadEffort = 100 * time.Millisecond
	fleetEffort    = 30 * time.Millisecond
)

// smallWorkload is the size to which workloads shrink for [Case.Small].
const smallWorkload = 1_000

// Case is one problem with a name that stays the same.
type Case struct {
	// Name is "family/member".
	Name string
	// Small cases are quick enough for a test of every change.
	Small bool

	decide func(context.Context) (string, error)
}

// Decide solves the case and returns the decision as text.
func (c *Case) Decide(ctx context.Context) (string, error) {
	text, err := c.decide(ctx)
	if err != nil {
		return "", fmt.Errorf("case %s: %w", c.Name, err)
	}
	return text, nil
}

// Hash is the short form of a decision.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// generated are the families of clusters: how many of each are recorded, from
// which seed on. One in smallShare of them is small.
func generated() []family {
	return []family{
		{"usual", 1_400, 100_000, differential.Generate},
		{"wide", 1_400, 200_000, differential.GenerateWide},
		{"large", 200, 300_000, differential.GenerateLarge},
	}
}

const smallShare = 20

type family struct {
	name  string
	count uint64
	first uint64
	draw  func(uint64) (*workload.Input, error)
}

// All lists the cases: generated clusters, workloads of the benchmark whole and
// shrunk, fleets.
func All() []Case {
	var all []Case
	for _, f := range generated() {
		for i := range f.count {
			seed := f.first + i
			all = append(all, Case{
				Name: fmt.Sprintf("%s/%d", f.name, seed), Small: i%smallShare == 0 && f.name != "large" || i == 0,
				decide: func(ctx context.Context) (string, error) {
					in, err := f.draw(seed)
					if err != nil {
						return "", err
					}
					return planned(ctx, in, clusterEffort)
				},
			})
		}
	}
	for _, w := range workload.All() {
		for _, pods := range []int{0, smallWorkload} {
			if pods > 0 && w.Pods <= pods {
				continue
			}
			size := w.Pods
			if pods > 0 {
				size = pods
			}
			all = append(all, Case{
				Name: fmt.Sprintf("workload/%s/%d", w.Name, size), Small: size <= smallWorkload,
				decide: func(ctx context.Context) (string, error) {
					in, err := w.Build(pods)
					if err != nil {
						return "", err
					}
					return planned(ctx, in, workloadEffort)
				},
			})
		}
	}
	for _, f := range fleets.All() {
		all = append(all, Case{
			Name: "fleet/" + f.Name, Small: f.Nodes <= 500,
			decide: func(ctx context.Context) (string, error) { return disrupted(ctx, f) },
		})
	}
	return all
}

func planned(ctx context.Context, in *workload.Input, effort time.Duration) (string, error) {
	n := bench.NewNap(in, model.Policy{})
	stated, err := n.State(ctx)
	if err != nil {
		return "", err
	}
	return describePlan(stated.Problem, n.SolveSteps(stated, effort)), nil
}

func disrupted(ctx context.Context, f fleets.Fleet) (string, error) {
	in, moves, err := fleets.Decide(ctx, f, fleetEffort)
	if err != nil {
		return "", err
	}
	return describeMoves(in, moves), nil
}
