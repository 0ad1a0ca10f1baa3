// Command nap provisions nodes for Kubernetes on Azure, and is the tool to look
// at what it does. This file only connects the process to internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nodeautoprovision/nap/internal/cli"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// version is set by the linker for releases.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	run := cli.Main
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		run = cli.Plugin
	}
	os.Exit(run(ctx, os.Args[1:], version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
