//go:build !unix

package cli

import (
	"context"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// replaceProcess runs the other program in the place of nap: these systems cannot
// replace a process.
func replaceProcess(ctx context.Context, path string, args []string, s command.Streams) error {
	return runChild(ctx, path, args, s)
}
