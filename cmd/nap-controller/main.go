// Command nap-controller is what a cluster runs: the controller that buys machines
// for pods which wait, and removes nodes that are not needed. It has no lab, simulator
// or benchmark in it. This file only connects the process to internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/cli/controllercli"
)

// version is set by the linker for releases.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(controllercli.Main(ctx, os.Args[1:], version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
