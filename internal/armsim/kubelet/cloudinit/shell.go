package cloudinit

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
)

// disk is what a boothook works on.
type disk struct {
	image   map[string]File // what the image has, which nothing here changes
	machine *Machine
}

// file is a file of the machine, custom data's before the image's.
func (d *disk) file(name string) (File, bool) {
	if f, ok := d.machine.Files[path.Clean(name)]; ok {
		return f, true
	}
	f, ok := d.image[path.Clean(name)]
	return f, ok
}

// start notes that a program or service was started.
func (d *disk) start(name string) {
	d.machine.Started = append(d.machine.Started, Start{Name: name, Files: maps.Clone(d.machine.Files)})
}

// shell runs the commands of one script.
type shell struct {
	disk      *disk
	variables map[string]string
	onError   bool // set -e: the first failure ends the script
	unset     bool // set -u: variables that are not set are failures
	pipefail  bool
	ended     bool // the script has ended, with code
	code      int
	steps     int
}

// maxSteps bounds a script: it has no loops, so this is more than any has.
const maxSteps = 10_000

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes a script to its end and returns its exit code. An error says what of it
// the machine's shell cannot read.
func (d *disk) run(script string) (int, error) {
	tree, err := parse(script)
	if err != nil {
		return 0, err
	}
	var log bytes.Buffer
	s := &shell{disk: d, variables: map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}}
	code := s.list(tree, streams{in: strings.NewReader(""), out: &log, err: &log})
	d.machine.Log += log.String()
	if s.ended {
		return s.code, nil
	}
	return code, nil
}

// list runs items; its code is that of the last one.
func (s *shell) list(items list, io streams) int {
	code := 0
	for i, it := range items {
		if it.after == "&&" && code != 0 || it.after == "||" && code == 0 {
			continue
		}
		code = s.item(it, io)
		if s.ended {
			return s.code
		}
		tested := it.negated || i+1 < len(items) && items[i+1].after != ""
		if code != 0 && s.onError && !tested {
			s.ended, s.code = true, code
			return code
		}
	}
	return code
}

func (s *shell) item(it item, io streams) int {
	code := s.pipe(it.pipe, io)
	switch {
	case it.background:
		return 0
	case it.negated && code != 0:
		return 0
	case it.negated:
		return 1
	}
	return code
}

// pipe runs commands, each on the output of the one before. Those of a pipeline run in
// shells of their own.
func (s *shell) pipe(commands []command, io streams) int {
	if len(commands) == 1 {
		return s.command(commands[0], io)
	}
	failed, code := 0, 0
	for i, c := range commands {
		var out bytes.Buffer
		own := io
		if i+1 < len(commands) {
			own.out = &out
		}
		child := s.child()
		code = child.command(c, own)
		if child.ended {
			code = child.code
		}
		if code != 0 {
			failed = code
		}
		io.in = &out
	}
	if s.pipefail {
		return failed
	}
	return code
}

// child is a shell of the same state, whose end is not that of the script.
func (s *shell) child() *shell {
	c := *s
	c.variables = maps.Clone(s.variables)
	return &c
}

func (s *shell) command(c command, io streams) int {
	if s.steps++; s.steps > maxSteps {
		return s.fail(io, "line %d: the script does not end", c.line)
	}
	closers, err := s.redirect(c.redirects, &io)
	defer func() {
		for _, f := range closers {
			f()
		}
	}()
	if err != nil {
		fmt.Fprintf(io.err, "bash: line %d: %s\n", c.line, err)
		return 1
	}
	if c.branches != nil {
		return s.branch(c.branches, io)
	}
	args, err := s.expand(c.words, io)
	if err != nil {
		return s.fail(io, "line %d: %s", c.line, err)
	}
	for _, a := range c.assigns {
		value, err := s.text(a.value, io)
		if err != nil {
			return s.fail(io, "line %d: %s", c.line, err)
		}
		if len(args) == 0 {
			s.variables[a.name] = value
		}
	}
	if len(args) == 0 {
		return 0
	}
	return s.call(args, io)
}

// fail ends the script.
func (s *shell) fail(io streams, format string, args ...any) int {
	fmt.Fprintf(io.err, "bash: "+format+"\n", args...)
	s.ended, s.code = true, 1
	return 1
}

func (s *shell) branch(branches []branch, io streams) int {
	for _, b := range branches {
		if b.condition != nil {
			strict := s.onError
			s.onError = false
			code := s.list(b.condition, io)
			s.onError = strict
			if s.ended {
				return s.code
			}
			if code != 0 {
				continue
			}
		}
		return s.list(b.body, io)
	}
	return 0
}

// redirect connects a command's streams with files. What it returns has to be called when
// the command has ended.
func (s *shell) redirect(redirects []redirect, io *streams) (closers []func(), err error) {
	for _, r := range redirects {
		target, err := s.text(r.word, *io)
		if err != nil {
			return closers, err
		}
		switch r.op {
		case "<<":
			io.in = strings.NewReader(target)
		case "<":
			f, ok := s.disk.file(target)
			if target == "/dev/null" {
				f, ok = File{}, true
			}
			if !ok {
				return closers, fmt.Errorf("%s: No such file or directory", target)
			}
			io.in = bytes.NewReader(f.Data)
		case ">&":
			*io = duplicate(*io, r.fd, target)
		default:
			w, done := s.disk.open(target, r.op == ">>")
			closers = append(closers, done)
			if r.fd == 2 {
				io.err = w
			} else {
				io.out = w
			}
		}
	}
	return closers, nil
}

// duplicate connects one output with the other.
func duplicate(io streams, fd int, target string) streams {
	switch {
	case fd == 2 && target == "1":
		io.err = io.out
	case fd == 1 && target == "2":
		io.out = io.err
	}
	return io
}

// open opens a file to write, which is there from now on.
func (d *disk) open(name string, appending bool) (w io.Writer, done func()) {
	if name == "/dev/null" || strings.HasPrefix(name, "/dev/") {
		return io.Discard, func() {}
	}
	if !path.IsAbs(name) {
		name = path.Join("/", name)
	}
	var buffer bytes.Buffer
	old, existed := d.file(name)
	mode := old.Mode
	if !existed {
		mode = newFileMode
	}
	if appending {
		buffer.Write(old.Data)
	}
	d.machine.Files[path.Clean(name)] = File{Data: bytes.Clone(buffer.Bytes()), Mode: mode}
	return &buffer, func() {
		// The mode may have been changed meanwhile.
		d.machine.Files[path.Clean(name)] = File{Data: buffer.Bytes(), Mode: d.machine.Files[path.Clean(name)].Mode}
	}
}

// newFileMode is that of files under the umask with which cloud-init runs scripts, 022.
const newFileMode = 0o644

// expand makes arguments of words.
func (s *shell) expand(words []word, io streams) ([]string, error) {
	var out []string
	for _, w := range words {
		text, err := s.text(w, io)
		if err != nil {
			return nil, err
		}
		if text == "" && len(w) == 1 && (w[0].variable != "" || w[0].output != nil) {
			continue // an empty variable outside of quotes is no argument
		}
		out = append(out, text)
	}
	return out, nil
}

// text expands a word.
func (s *shell) text(w word, io streams) (string, error) {
	var out strings.Builder
	for _, p := range w {
		switch {
		case p.variable != "":
			value, ok := s.variables[p.variable]
			if !ok && s.unset {
				return "", fmt.Errorf("%s: unbound variable", p.variable)
			}
			out.WriteString(value)
		case p.output != nil:
			var buffer bytes.Buffer
			io.out = &buffer
			s.child().list(p.output, io)
			out.WriteString(strings.TrimRight(buffer.String(), "\n"))
		default:
			out.WriteString(p.text)
		}
	}
	return out.String(), nil
}
