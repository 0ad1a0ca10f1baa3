package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// parts lists everything to supervise in starting order.
func (l *Lab) parts(probes probes) []part {
	var parts []part
	for _, name := range components() {
		c := child{
			spawner: l.spawner, program: l.cfg.Binary, args: l.args(name),
			log: l.layout.log(name), ready: probes[name],
		}
		if name == Etcd {
			// The others keep nothing of their own and are simply killed: a
			// graceful end of the API server takes 5 to 8 s.
			c.grace = func() time.Duration { return 5 * time.Second }
		}
		run := c.run
		if name != Etcd {
			run = func(ctx context.Context, notify events) error {
				now := c // the version is raised while the lab runs
				now.args = append(slices.Clone(c.args), l.emulation.args()...)
				return now.run(ctx, notify)
			}
		}
		parts = append(parts, part{name: name, kind: KindComponent, run: run, lastWords: func() string { return lastWords(c.log) }})
	}
	for _, s := range l.cfg.Services {
		parts = append(parts, l.servicePart(s))
	}
	return parts
}

// args are the command line of a component: what every lab has, and what this one was told.
func (l *Lab) args(component string) []string {
	args := componentArgs(l.layout, component, l.env.Ports)
	switch {
	case component == APIServer && l.cfg.Audit != "":
		args = append(args, auditArgs(l.layout)...)
	case component == ControllerManager:
		args = append(args, "--node-monitor-grace-period="+l.cfg.NodeMonitorGracePeriod.String())
	}
	return args
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
		env.Ready, env.NotReady = notify.ready, notify.unready
		err = s.Run(ctx, env)
		if ctx.Err() == nil && err != nil {
			env.Log.Error("service ended", "error", err)
		}
		return err
	}
	return part{name: s.Name(), kind: KindService, run: run, lastWords: func() string { return lastWords(file) }}
}
