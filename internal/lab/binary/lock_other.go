//go:build !unix

package binary

import (
	"context"
	"errors"
)

// lockBuild refuses: the lab's supervisor needs process groups and signals that these
// systems do not have.
func lockBuild(context.Context, string) (unlock func(), err error) {
	return nil, errors.New("a lab runs on Linux and macOS only")
}
