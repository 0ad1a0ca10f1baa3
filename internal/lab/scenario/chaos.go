package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// chaos kills a part of the lab again and again in the background.
type chaos struct {
	lab    Lab
	story  *story
	cancel context.CancelFunc
	done   chan error
}

func newChaos(lab Lab, s *story) *chaos { return &chaos{lab: lab, story: s} }

// plan is a parsed `chaos kill`.
type plan struct {
	component string
	times     int
	min, max  time.Duration
	seed      uint64
}

func parseChaos(args []string) (plan, error) {
	if len(args) < 2 {
		return plan{}, fmt.Errorf("say: chaos kill COMPONENT times=N every=MIN..MAX seed=N")
	}
	p := plan{component: args[1]}
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "times":
			p.times, err = strconv.Atoi(value)
		case "seed":
			p.seed, err = strconv.ParseUint(value, 10, 64)
		case "every":
			low, high, _ := strings.Cut(value, "..")
			if p.min, err = time.ParseDuration(low); err == nil {
				p.max, err = time.ParseDuration(high)
			}
		default:
			err = fmt.Errorf("allowed are times, every, seed")
		}
		if err != nil {
			return p, fmt.Errorf("%q: %w", arg, err)
		}
	}
	if p.times < 1 || p.min <= 0 || p.max < p.min {
		return p, fmt.Errorf("needs times=N of at least 1 and every=MIN..MAX")
	}
	return p, nil
}

func (c *chaos) command(ctx context.Context, args []string) error {
	switch args[0] {
	case "wait":
		if c.done == nil {
			return fmt.Errorf("no chaos is under way")
		}
		err := <-c.done
		c.done = nil
		return err
	case "kill":
		if c.done != nil {
			return fmt.Errorf("chaos is under way already; chaos wait first")
		}
		p, err := parseChaos(args)
		if err != nil {
			return err
		}
		ctx, c.cancel = context.WithCancel(ctx)
		c.done = make(chan error, 1)
		go func() { c.done <- c.kill(ctx, p) }()
		return nil
	}
	return fmt.Errorf("allowed: chaos kill, chaos wait")
}

func (c *chaos) kill(ctx context.Context, p plan) error {
	random := rand.New(rand.NewPCG(p.seed, 0))
	for i := range p.times {
		pause := p.min + time.Duration(random.Int64N(int64(p.max-p.min)+1))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.lab.Kill(ctx, p.component); err != nil {
			return fmt.Errorf("kill %d of %d: %w", i+1, p.times, err)
		}
		c.story.line("kill", fmt.Sprintf("%s, %d of %d", p.component, i+1, p.times))
	}
	return nil
}

// stop ends the background work and waits for it.
func (c *chaos) stop() {
	if c.done != nil {
		c.cancel()
		_ = <-c.done // what failed is of no interest any more
		c.done = nil
	}
}
