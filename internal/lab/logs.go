package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// LogNames lists what has a log: the parts in starting order and the supervisor.
func (s *State) LogNames() []string { return append(s.PartNames(), supervisorName) }

// LogFile is the path of a part's log in a lab's folder, which is an absolute path.
func LogFile(dir, part string) string { return layout(dir).log(part) }

// LogOptions select what of a log to print.
type LogOptions struct {
	// Part is one of State.LogNames; empty means all.
	Part string
	// Tail is how many of the last lines to print of each log; less than 0
	// means all.
	Tail int
	// Follow continues to print what is added until the context is done.
	Follow bool
}

// Logs prints logs of the lab in dir. With more than one log each line begins
// with the name of its part.
func Logs(ctx context.Context, dir string, o LogOptions, out io.Writer) error {
	s, err := Inspect(dir)
	if err != nil {
		return err
	}
	names := s.LogNames()
	if o.Part != "" {
		if !slices.Contains(names, o.Part) {
			return unknownPart(o.Part, names)
		}
		names = []string{o.Part}
	}
	followers := make([]*follower, len(names))
	for i, name := range names {
		f := &follower{path: layout(s.Dir).log(name)}
		if len(names) > 1 {
			f.prefix = fmt.Sprintf("%-24s | ", name)
		}
		followers[i] = f
		if err := f.printTail(out, o.Tail); err != nil {
			return err
		}
	}
	if !o.Follow {
		return nil
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, f := range followers {
			if err := f.printNew(out); err != nil {
				return err
			}
		}
	}
}

// follower prints a growing file by whole lines.
type follower struct {
	path   string
	prefix string
	offset int64
}

// printTail prints the last n lines, or all with n < 0, and continues behind
// them. A log that does not exist yet is empty.
func (f *follower) printTail(out io.Writer, n int) error {
	data, err := f.read()
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	if n >= 0 && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	return f.print(out, lines)
}

func (f *follower) printNew(out io.Writer) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() < f.offset {
		f.offset = 0 // the lab was started again and this is a new file
	}
	data, err := f.read()
	if err != nil {
		return err
	}
	return f.print(out, bytes.SplitAfter(data, []byte("\n")))
}

// read returns what was added since, up to the last whole line.
func (f *follower) read() ([]byte, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	f.offset += int64(len(data))
	return data, nil
}

func (f *follower) print(out io.Writer, lines [][]byte) error {
	for _, line := range lines {
		if len(line) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s%s", f.prefix, line); err != nil {
			return err
		}
	}
	return nil
}

// lastWords returns what a part logged before it ended, indented for a message:
// the beginning of its panic if it had one, because the end of a stack trace says
// nothing, or else its last lines.
func lastWords(path string) string {
	const most = 10
	data, err := (&follower{path: path}).read()
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	begin := max(0, len(lines)-most)
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			begin = i
			break
		}
	}
	lines = lines[begin:min(begin+most, len(lines))]
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return "  " + strings.Join(lines, "\n  ")
}
