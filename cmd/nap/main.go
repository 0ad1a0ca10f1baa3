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
	"github.com/nodeautoprovision/nap/internal/gctuning"
)

// version is set by the linker for releases.
var version = "development"

// leastHeap is how many bytes of heap nap takes before it collects garbage for the first time:
// most commands never do, and a large file is read with a fifth less of processor time.
const leastHeap = 128 << 20

func main() {
	if _, chosen := os.LookupEnv("GOGC"); !chosen {
		gctuning.Set(100, leastHeap)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	run := cli.Main
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		run = cli.Plugin
	}
	os.Exit(run(ctx, os.Args[1:], version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
