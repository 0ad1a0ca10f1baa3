// Package binary finds the program nap-lab, and builds it in a checkout of nap's
// sources. It is a room of its own, without Kubernetes, because the program for
// people has it and must stay small.
package binary

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Variable is the environment variable that names a nap-lab program to use as it is.
const Variable = "NAP_LAB_BINARY"

// Name is the program's name.
const Name = "nap-lab"

const modulePath = "github.com/nodeautoprovision/nap"

// Ensure returns the path of a nap-lab binary, the first of: the one that
// NAP_LAB_BINARY names; in a checkout of nap (the working directory or the
// program's own place is in one) bin/nap-lab, which is built when it is missing
// or older than its sources; one beside the running program; one in PATH.
// Progress of a build goes to progress, one line at a time.
func Ensure(ctx context.Context, progress func(line string)) (string, error) {
	if path := os.Getenv(Variable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", Variable, err)
		}
		return filepath.Abs(path)
	}
	if root, ok := checkout(); ok {
		return Build(ctx, root, progress)
	}
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), Name); isFile(beside) {
			return beside, nil
		}
	}
	if path, err := exec.LookPath(Name); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("the control plane binary %s is missing: put it beside nap or in PATH, name it with %s, or run "+
		"nap in a checkout of its sources, where it is built", Name, Variable)
}

// Installed is Ensure for those that need the control plane alone: a nap-lab in the
// checkout is good enough, however old it is.
func Installed(ctx context.Context, progress func(line string)) (string, error) {
	if root, ok := checkout(); ok && os.Getenv(Variable) == "" {
		if path := filepath.Join(root, "bin", Name); isFile(path) {
			return path, nil
		}
	}
	return Ensure(ctx, progress)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkout finds the sources of nap: the working directory or the folder of the
// running program, or one above.
func checkout() (root string, ok bool) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if self, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(self))
	}
	for _, dir := range starts {
		for {
			if isCheckout(dir) {
				return dir, true
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", false
}

func isCheckout(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "lab", "go.mod"))
	return err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"/lab\n"))
}

// Build makes bin/nap-lab in the checkout at root and returns its path. It does
// nothing if the binary is there and its sources are those that it was built
// from. Several processes may call it at once: one builds, the others wait.
func Build(ctx context.Context, root string, progress func(line string)) (string, error) {
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	target := filepath.Join(bin, Name)
	unlock, err := lockBuild(ctx, target+".lock")
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	defer unlock()
	source := filepath.Join(root, "lab")
	stamp, err := sourceStamp(root)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	built, err := os.ReadFile(target + ".stamp")
	if err == nil && string(built) == stamp && isFile(target) {
		return target, nil
	}
	if err := compile(ctx, source, target, progress); err != nil {
		return "", err
	}
	if err := os.WriteFile(target+".stamp", []byte(stamp), 0o644); err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	return target, nil
}

// sources are what of a checkout nap-lab is built from.
func sources() []string { return []string{"lab", "internal", "api", "charts", "go.mod", "go.sum"} }

// sourceStamp is a digest of everything that decides what is built, except for
// the Go version: a new compiler alone is no reason to build for minutes. Files that
// are embedded count like Go files; tests and documents do not.
func sourceStamp(root string) (string, error) {
	digest := sha256.New()
	for _, source := range sources() {
		err := filepath.WalkDir(filepath.Join(root, source), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".md") {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(digest, "%s %d\n", rel, len(data))
			digest.Write(data)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// linkerFlags give the binary the version of the Kubernetes module that it is
// built from. Without them kubectl cannot read the server's version.
func linkerFlags(goMod []byte) (string, error) {
	m := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v((\d+)\.(\d+)\.\d+)$`).FindSubmatch(goMod)
	if m == nil {
		return "", errors.New("lab/go.mod requires no release of k8s.io/kubernetes")
	}
	version, major, minor := m[1], m[2], m[3]
	const component, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{component, client} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=v%s", pkg, version),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, major),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, minor),
			fmt.Sprintf("-X %s.gitTreeState=clean", pkg),
			fmt.Sprintf("-X %s.gitCommit=nap-lab", pkg),
			fmt.Sprintf("-X %s.buildDate=1970-01-01T00:00:00Z", pkg),
		)
	}
	return strings.Join(flags, " "), nil
}

// compile runs the Go compiler. It writes beside the target and renames, so that
// a lab that runs from the old binary is not disturbed.
func compile(ctx context.Context, source, target string, progress func(string)) error {
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	flags, err := linkerFlags(goMod)
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("build the control plane: %w; install Go, or name a built binary with %s", err, Variable)
	}
	progress("building nap-lab (etcd, Kubernetes and the simulated Azure) into " + relative(target))
	progress("this takes 4 to 10 minutes on two cores the first time, under a minute later, and 3 GB of memory")

	temporary := target + ".new"
	defer os.Remove(temporary)
	// -v prints each package that is compiled, which is all the progress there is.
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags", flags, "-o", temporary, ".")
	cmd.Dir = source
	// Where Go's settings forbid newer releases, go.mod's would be refused.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=auto")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // lets go end its compilers
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	var rest remaining
	stop := rest.count(ctx, source, cmd.Env)
	messages := watchBuild(output, began, &rest, progress)
	stop()
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build the control plane: interrupted (%w); the next build continues where this one was", ctx.Err())
		}
		return fmt.Errorf("build the control plane: go build in %s: %w\n%s", source, err, strings.Join(messages, "\n"))
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	progress(fmt.Sprintf("built in %s", time.Since(began).Round(time.Second)))
	return nil
}

// reportEvery is the pause between two lines of build progress.
const reportEvery = 10 * time.Second

// packageLine matches what go build -v prints for a package.
var packageLine = regexp.MustCompile(`^[A-Za-z0-9._~/-]+$`)

// watchBuild counts the packages that the build reports, tells the count and what is left
// now and then, and returns the lines that are something else, to the last 20.
func watchBuild(output io.Reader, began time.Time, rest *remaining, progress func(string)) []string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var messages []string
	packages := 0
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				return messages
			case packageLine.MatchString(line):
				packages++
			default:
				messages = append(messages, line)
				messages = messages[max(0, len(messages)-20):]
			}
		case <-tick.C:
			progress(progressLine(packages, int(rest.packages.Load()), time.Since(began)))
		}
	}
}

// relative shortens a path for people, if it is below the working directory.
func relative(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}
