//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// replaceProcess makes the process the other program, so that signals, the terminal
// and the exit code are its own. It returns only where that fails, or where nap's
// streams are not those of the process.
func replaceProcess(ctx context.Context, path string, args []string, s command.Streams) error {
	if s.In != os.Stdin || s.Out != os.Stdout || s.Err != os.Stderr {
		return runChild(ctx, path, args, s)
	}
	err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("run %s: %w", path, err)
}
