package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Workspace is the folder in which suites are compiled and run. It may be removed at any
// time; the record is elsewhere.
type Workspace struct {
	// Dir is the folder, an absolute path.
	Dir string
	// Lab is the path of the program nap-lab, and Runner that of the program that is
	// running, which plays the programs that envtest starts.
	Lab, Runner string
	// Modules are folders with checkouts, by module path, that are used in the place of
	// published modules.
	Modules map[string]string
}

// NewWorkspace makes the folder. The lab is the path of the program nap-lab.
func NewWorkspace(dir, lab string, modules map[string]string) (*Workspace, error) {
	runner, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the path of the running program: %w", err)
	}
	w := &Workspace{Runner: runner, Modules: map[string]string{}}
	if w.Dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	if w.Lab, err = filepath.Abs(lab); err != nil {
		return nil, fmt.Errorf("program %s: %w", lab, err)
	}
	if _, err := os.Stat(w.Lab); err != nil {
		return nil, fmt.Errorf("the suites need the program nap-lab: %w; run: make lab", err)
	}
	for module, checkout := range modules {
		if w.Modules[module], err = filepath.Abs(checkout); err != nil {
			return nil, fmt.Errorf("folder %s: %w", checkout, err)
		}
		if _, err := os.Stat(filepath.Join(checkout, "go.mod")); err != nil {
			return nil, fmt.Errorf("%s is no checkout of %s: %w", checkout, module, err)
		}
	}
	return w, os.MkdirAll(w.Dir, 0o755)
}

// ErrNotToBeHad is the error of a module that cannot be downloaded.
var ErrNotToBeHad = errors.New("the module cannot be downloaded")

// Open returns a folder whose content is the suite's module: a link to where Go keeps it.
func (w *Workspace) Open(ctx context.Context, s Suite) (string, error) {
	target := w.Modules[s.Module]
	if target == "" {
		var err error
		if target, err = download(ctx, s); err != nil {
			return "", err
		}
	}
	link := w.link(s)
	if have, err := os.Readlink(link); err == nil && have == target {
		return link, nil
	}
	if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
		return "", fmt.Errorf("link to module %s: %w", s.Module, err)
	}
	return link, nil
}

// link is the path of the link to the suite's module.
func (w *Workspace) link(s Suite) string {
	return filepath.Join(w.Dir, strings.ReplaceAll(s.Module, "/", "_"))
}

// download asks Go for the folder of the suite's module, in the version that nap is built
// with if the suite names none.
func download(ctx context.Context, s Suite) (string, error) {
	version := s.Version
	if version == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", s.Module).Output()
		if err != nil {
			return "", fmt.Errorf("find the version of %s that nap is built with: %w", s.Module, err)
		}
		version = strings.TrimSpace(string(out))
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.Module+"@"+version)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil || answer.Dir == "" {
		why := cmp.Or(answer.Error, stderr.String(), fmt.Sprint(failed))
		return "", fmt.Errorf("%w: %s@%s: %s", ErrNotToBeHad, s.Module, version, shorten(why))
	}
	return answer.Dir, nil
}
