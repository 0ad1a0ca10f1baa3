package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// parts lists everything to supervise in starting order.
func (l *Lab) parts(probes probes) []part {
	var parts []part
	for _, name := range components() {
		c := child{
			spawner: l.spawner, program: l.cfg.Binary, args: componentArgs(l.layout, name, l.env.Ports),
			log: l.layout.log(name), ready: probes[name],
		}
		if name == Etcd {
			// The others keep nothing of their own and are simply killed: a
			// graceful end of the API server takes 5 to 8 s.
			c.grace = 5 * time.Second
		}
		parts = append(parts, part{name: name, kind: KindComponent, run: c.run, lastWords: func() string { return lastWords(c.log) }})
	}
	for _, s := range l.cfg.Services {
		parts = append(parts, l.servicePart(s))
	}
	for _, p := range l.cfg.Processes {
		parts = append(parts, l.processPart(p))
	}
	return parts
}

func (l *Lab) processPart(p Process) part {
	c := child{
		spawner: l.spawner, program: l.cfg.Executable, log: l.layout.log(p.Name),
		grace: 10 * time.Second,
		ready: func(ctx context.Context) error {
			if p.Ready == nil {
				return nil
			}
			return p.Ready(ctx, l.env)
		},
	}
	run := func(ctx context.Context, notify events) error {
		c := c
		c.args = p.Args(l.env)
		if p.Env != nil {
			env, err := p.Env(l.env)
			if err != nil {
				return fmt.Errorf("has no environment: %w", err)
			}
			c.env = env
		}
		return c.run(ctx, notify)
	}
	return part{name: p.Name, kind: KindProcess, run: run, lastWords: func() string { return lastWords(c.log) }}
}

func (l *Lab) servicePart(s Service) part {
	file := l.layout.log(s.Name())
	run := func(ctx context.Context, notify events) error {
		log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		defer log.Close()
		self, err := identify(os.Getpid())
		if err != nil {
			return err
		}
		notify.started(self)
		env := l.env
		env.Log = slog.New(slog.NewTextHandler(log, nil))
		env.Ready = notify.ready
		err = s.Run(ctx, env)
		if ctx.Err() == nil && err != nil {
			env.Log.Error("service ended", "error", err)
		}
		return err
	}
	return part{name: s.Name(), kind: KindService, run: run, lastWords: func() string { return lastWords(file) }}
}
