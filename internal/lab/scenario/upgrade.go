package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// upgrade does what the verbs of upgrades say, and tells it.
func (r *runner) upgrade(ctx context.Context, c Command) error {
	switch c.Verb {
	case "publish-image":
		r.story.line("publish", "node image version "+c.Args[0])
		return r.Lab.PublishImages(ctx, c.Args[0])
	case "window":
		r.story.line("window", strings.Join(c.Args, ": "))
		return r.Lab.SetWindow(ctx, c.Args[0], c.Args[1])
	case "upgrade-kubernetes":
		version, err := r.Lab.UpgradeKubernetes(ctx, c.Args[0])
		if err == nil {
			r.story.line("upgrade", "the control plane serves Kubernetes "+version)
		}
		return err
	case "upgrade-nap":
		r.story.line("rollout", "nap with "+strings.Join(c.Args, " "))
		return r.Lab.UpgradeNap(ctx, c.Args)
	}
	r.story.line("rollout", "nap as it was before")
	return r.Lab.RollbackNap(ctx)
}

func checkWindow(args []string) error {
	if !slices.Contains(Windows(), args[0]) {
		return fmt.Errorf("window %q: allowed are %s", args[0], strings.Join(Windows(), ", "))
	}
	if !slices.Contains(WindowStates(), args[1]) {
		return fmt.Errorf("window %s %q: allowed are %s", args[0], args[1], strings.Join(WindowStates(), ", "))
	}
	return nil
}

func checkSettings(args []string) error {
	for _, a := range args {
		if name, _, ok := strings.Cut(a, "="); !ok || name == "" {
			return fmt.Errorf("upgrade-nap: %q is not NAME=VALUE", a)
		}
	}
	return nil
}
