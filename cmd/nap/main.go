// Command nap provisions nodes for Kubernetes on Azure, and is the tool to look
// at what it does. This file only connects the process to internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/nodeautoprovision/nap/internal/cli"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// version is set by the linker for releases.
var version = "development"

// ballast is how many bytes are kept that nothing reads or writes, so that they take no memory.
// Garbage is collected when the heap has doubled: with them it grows by so much before, and a
// large file is read with up to a seventh less of processor time.
const ballast = 24 << 20

func main() {
	kept := make([]byte, ballast)
	code := run()
	runtime.KeepAlive(kept)
	os.Exit(code)
}

// run is the whole of the program, and returns what it exits with.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	program := cli.Main
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		program = cli.Plugin
	}
	return program(ctx, os.Args[1:], version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
