package compare

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Suite is a package with benchmarks, and the expression that selects them.
type Suite struct{ Package, Pattern string }

// Suites are the benchmarks that are compared: plans without a budget, and answers of
// consolidation with 30 ms.
func Suites() []Suite {
	return []Suite{
		{"internal/planner", `^BenchmarkSolve$/.*/^0s$`},
		{"internal/planner/consolidate", `^BenchmarkFirstMoves$`},
	}
}

// Side is a commit whose benchmarks are built.
type Side struct {
	// Name is what the table calls it.
	Name string
	// root is the directory of its sources: benchmarks read files from there.
	root string
	// binaries are the tests of the suites, in their order.
	binaries []string
}

// Build builds the benchmarks of the sources in root into dir, which exists.
func Build(ctx context.Context, name, root, dir string) (*Side, error) {
	s := &Side{Name: name, root: root}
	for i, suite := range Suites() {
		binary := filepath.Join(dir, fmt.Sprintf("%d.test", i))
		if err := command(ctx, root, "go", "test", "-c", "-o", binary, "./"+suite.Package); err != nil {
			return nil, err
		}
		s.binaries = append(s.binaries, binary)
	}
	return s, nil
}

// CheckOut lays the sources of a commit of the repository in root out in dir, which does
// not exist yet. The returned function removes them.
func CheckOut(ctx context.Context, root, commit, dir string) (remove func() error, err error) {
	if err := command(ctx, root, "git", "worktree", "add", "--detach", dir, commit); err != nil {
		return nil, err
	}
	return func() error {
		return command(context.WithoutCancel(ctx), root, "git", "worktree", "remove", "--force", dir)
	}, nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
