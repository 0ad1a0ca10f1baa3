package scenario

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// Stage is where a scenario plays.
type Stage struct {
	// Kubernetes is the lab's cluster, with administrator rights.
	Kubernetes *rest.Config
	// Apply applies the objects of a YAML file, server side.
	Apply func(ctx context.Context, manifest []byte) error
	Azure Azure
	Lab   Lab
	// Unbroken leaves out what only a lab can do: faults, kills, chaos, loads and upgrades.
	Unbroken bool
	// Patience multiplies every time that the story allows; 0 means 1.
	Patience float64
	// Out receives the story, one line each.
	Out io.Writer
}

// patient is how long something may take that the story allows a time for.
func (s *Stage) patient(d time.Duration) time.Duration {
	if s.Patience == 0 {
		return d
	}
	return time.Duration(float64(d) * s.Patience)
}

// runner plays one scenario.
type runner struct {
	Stage
	scenario *Scenario
	world    *world
	story    *story
	chaos    *chaos
	steps    []stepResult
	began    time.Time
}

// Run plays the scenario to its end. The error of the first command that fails
// names its line and what was true instead; everything started in the
// background has ended when Run returns.
func Run(ctx context.Context, s *Scenario, stage Stage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := observe(ctx, stage.Kubernetes)
	if err != nil {
		return err
	}
	r := &runner{Stage: stage, scenario: s, world: w, began: time.Now()}
	r.story = newStory(stage.Out, r.began)
	r.story.follow(w)
	r.chaos = newChaos(stage.Lab, r.story)
	defer r.chaos.stop()
	for _, c := range s.Commands {
		if err := r.do(ctx, c); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", s.Name, c.Line, c, err)
		}
	}
	return nil
}

// breaking are the verbs that do something to the lab itself.
func breaking() []string {
	return []string{"fault", "kill", "chaos", "load", "publish-image", "window", "upgrade-kubernetes", "upgrade-nap", "rollback-nap"}
}

func (r *runner) do(ctx context.Context, c Command) error {
	if r.Unbroken && slices.Contains(breaking(), c.Verb) {
		r.story.line("left out", c.String())
		return nil
	}
	switch c.Verb {
	case "step":
		return r.step(ctx, c.Args)
	case "say":
		r.story.say(c.Args)
		return nil
	case "apply":
		return r.Apply(ctx, r.scenario.files[c.Args[0]])
	case "delete":
		return r.delete(ctx, c.Args[0], c.Args[1])
	case "scale":
		return r.scale(ctx, c.Args[0], c.Args[1], c.Args[2])
	case "load":
		return r.load(ctx, c.Args)
	case "resize":
		return r.resize(ctx, c.Args)
	case "wait":
		return r.wait(ctx, c.Args)
	case "fault":
		return r.fault(ctx, c.Args)
	case "kill":
		return r.Lab.Kill(ctx, c.Args[0])
	case "chaos":
		return r.chaos.command(ctx, c.Args)
	case "publish-image", "window", "upgrade-kubernetes", "upgrade-nap", "rollback-nap":
		return r.upgrade(ctx, c)
	case "expect":
		return r.expect(ctx, c.Args)
	case "table":
		return r.table(ctx)
	}
	return fmt.Errorf("no such command") // Parse has refused it already
}
