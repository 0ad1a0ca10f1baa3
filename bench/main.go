package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of a command that measures: it runs it until it ends or is
// interrupted. An error ends the process with exit code 1.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}
