package inputs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nodeautoprovision/nap/bench"
)

// Measured is what one run of nap plan took.
type Measured struct {
	Kind Kind
	// Bytes and Documents are the size of the file.
	Bytes, Documents int
	// Elapsed is the time that passed, CPU the processor time, both of the program as a whole.
	Elapsed, CPU time.Duration
	// Peak is the most memory that was resident, in bytes.
	Peak int64
}

// Measure writes the file of a kind into a folder and plans for it with the program nap, as often
// as is asked for: the run that took least time counts. A file of which the program refuses
// something is an error.
func Measure(ctx context.Context, nap, dir string, k *Kind, size, runs int) (*Measured, error) {
	text, documents := k.Text(size)
	file := filepath.Join(dir, k.Name+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	var best *Measured
	for range runs {
		m := &Measured{Kind: *k, Bytes: len(text), Documents: documents}
		if err := m.run(ctx, nap, append([]string{"plan", "-f", file}, k.args...)); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		if best == nil || m.Elapsed < best.Elapsed {
			best = m
		}
	}
	return best, nil
}

// somethingChanges is the exit code of a plan that buys or removes something, or leaves pods pending.
const somethingChanges = 2

func (m *Measured) run(ctx context.Context, nap string, args []string) error {
	cmd := exec.CommandContext(ctx, nap, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	start := time.Now()
	err := cmd.Run()
	m.Elapsed = time.Since(start)
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != somethingChanges {
		return fmt.Errorf("%s ended with %d (%w): %s", nap, code, err, errs.Bytes()[:min(errs.Len(), 1_000)])
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	m.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.Peak = usage.Maxrss << 10
	return nil
}

// Table has a row for each kind.
func Table(all []*Measured) (string, error) {
	var lines [][]string
	for _, m := range all {
		lines = append(lines, []string{
			m.Kind.Says, fmt.Sprint(m.Documents), fmt.Sprintf("%.2f MB", float64(m.Bytes)/1e6),
			fmt.Sprintf("%.2f s", m.Elapsed.Seconds()), fmt.Sprintf("%.2f s", m.CPU.Seconds()), fmt.Sprintf("%.0f MB", float64(m.Peak)/1e6),
		})
	}
	var out bytes.Buffer
	err := bench.Markdown(&out, []string{"the file has", "documents", "size", "time", "processor time", "memory"}, lines)
	return out.String(), err
}
