package binary

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"
)

// fewCompiled is the number of packages below which the pace of a build says little: the
// first ones are small.
const fewCompiled = 50

// remaining says how many packages a build has to compile.
type remaining struct{ packages atomic.Int64 }

// count counts them beside the build, so that it delays nothing, and ends with the build
// when stop is called. Where go does not tell, the number stays zero.
func (r *remaining) count(ctx context.Context, source string, environ []string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.packages.Store(int64(uncompiled(ctx, source, environ)))
	}()
	return func() {
		cancel()
		<-ended
	}
}

// uncompiled asks go how many packages must be compiled for the program in source; zero
// when it does not tell.
func uncompiled(ctx context.Context, source string, environ []string) int {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", ".")
	cmd.Dir, cmd.Env = source, environ
	output, err := cmd.Output()
	if err != nil {
		return 0
	}
	return bytes.Count(output, []byte("\n"))
}

// progressLine tells how far a build is, and how long the rest takes if it goes on at the
// same pace. planned is zero when it is not known.
func progressLine(compiled, planned int, elapsed time.Duration) string {
	line := fmt.Sprintf("  %d packages compiled, %s elapsed", compiled, elapsed.Round(time.Second))
	switch {
	case planned < compiled || planned == 0:
		return line
	case planned == compiled:
		return line + ", linking"
	case compiled < fewCompiled:
		return fmt.Sprintf("  %d of %d packages compiled, %s elapsed", compiled, planned, elapsed.Round(time.Second))
	}
	left := elapsed * time.Duration(planned-compiled) / time.Duration(compiled)
	return fmt.Sprintf("  %d of %d packages compiled, %s elapsed, about %s to go", compiled, planned, elapsed.Round(time.Second),
		max(left.Round(reportEvery), reportEvery))
}
