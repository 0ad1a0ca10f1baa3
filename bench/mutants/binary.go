package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// binary is the compiled tests of one package.
type binary struct {
	// folder is the package's below the root of the module, dir the same as a path.
	folder, dir string
	path        string
}

// compile makes the tests of a package a binary.
func (r Runner) compile(ctx context.Context, folder, overlay string) (*binary, error) {
	path := filepath.Join(filepath.Dir(overlay), strings.ReplaceAll(folder, "/", "-")+".test")
	out, err := r.command(ctx, "test", "-c", "-vet=off", "-overlay", overlay, "-o", path, "./"+folder).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the tests of %s do not compile: %w\n%s", folder, err, out)
	}
	return &binary{folder: folder, dir: filepath.Join(r.Root, filepath.FromSlash(folder)), path: path}, nil
}

// run begins the binary where "go test" would and returns what it prints.
func (b *binary) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.path, append([]string{"-test.paniconexit0"}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), append(env, "PWD="+b.dir)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// list returns the names of the tests.
func (b *binary) list(ctx context.Context) ([]string, error) {
	out, err := b.run(ctx, nil, "-test.list", "^(Test|Example|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w\n%s", b.dir, err, out)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		names = append(names, strings.TrimSpace(line))
	}
	return names, nil
}

// record runs one test with no mutant on, which it must pass, and returns the numbers of
// the mutants that it reaches.
func (b *binary) record(ctx context.Context, name string, timeout time.Duration) ([]int, error) {
	path := b.path + "." + name
	out, err := b.run(ctx, []string{"NAP_MUTANTS_REACHED=" + path}, only([]string{name}, timeout)...)
	if err != nil {
		return nil, fmt.Errorf("%s in %s fails without any change, mend it first: %w\n%s", name, b.dir, err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var reached []int
	for _, word := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		reached = append(reached, n)
	}
	return reached, nil
}

// pass says whether tests pass with a mutant on. Those that take several times as long as
// without it do not end.
func (b *binary) pass(ctx context.Context, mutant int, tests []timedTest, most time.Duration) (bool, error) {
	const factor, grace = 5, 5 * time.Second
	var sum time.Duration
	var names []string
	for _, t := range tests {
		sum += t.took
		names = append(names, t.name)
	}
	timeout := min(factor*sum+grace, most)
	// What does not listen to its own timeout is ended from outside.
	within, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	out, err := b.run(within, []string{"NAP_MUTANT=" + strconv.Itoa(mutant)}, only(names, timeout)...)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return false, fmt.Errorf("%s has none of the tests %s", b.path, strings.Join(names, " "))
	case err == nil:
		return true, nil
	case within.Err() != nil || errors.As(err, &exit):
		return false, nil
	default:
		return false, err
	}
}

// only are the arguments by which a binary runs the named tests until one fails.
func only(names []string, timeout time.Duration) []string {
	return []string{"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", timeout.String()}
}
