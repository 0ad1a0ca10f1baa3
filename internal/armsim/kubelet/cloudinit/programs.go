package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// call runs a program, or what the shell itself does.
func (s *shell) call(args []string, io streams) int {
	name, rest := args[0], args[1:]
	switch name {
	case "set":
		s.options(rest)
		return 0
	case "exit":
		s.ended = true
		if len(rest) > 0 {
			s.code, _ = strconv.Atoi(rest[0]) // as the shell: what is no number is an error, whose code is not looked at
		}
		return s.code
	case "export":
		for _, a := range rest {
			if k, v, ok := strings.Cut(a, "="); ok {
				s.variables[k] = v
			}
		}
		return 0
	case ":", "true", "umask", "sleep", "sync", "chown", "mkdir", "logger":
		return 0
	case "false":
		return 1
	case "[", "test":
		return s.test(name, rest, io)
	case "nohup", "exec", "env", "setsid":
		if len(rest) > 0 {
			return s.call(rest, io)
		}
		return 0
	}
	return s.program(name, rest, io)
}

// options are those of set. Others than e, u and pipefail change nothing here.
func (s *shell) options(args []string) {
	for i, a := range args {
		on := strings.HasPrefix(a, "-")
		if a == "pipefail" && i > 0 {
			s.pipefail = strings.HasPrefix(args[i-1], "-")
			continue
		}
		if strings.Contains(a, "e") && len(a) < 6 && strings.ContainsAny(a[:1], "-+") {
			s.onError = on
		}
		if strings.Contains(a, "u") && len(a) < 6 && strings.ContainsAny(a[:1], "-+") {
			s.unset = on
		}
	}
}

// program runs one of those that the images have and boothooks use.
func (s *shell) program(name string, args []string, io streams) int {
	run, ok := programs()[path.Base(name)]
	if !ok {
		if _, ok := s.disk.file(name); ok {
			s.disk.start(name)
			return 0
		}
		fmt.Fprintf(io.err, "bash: %s: command not found\n", name)
		return 127
	}
	if err := run(s.disk, args, io); err != nil {
		fmt.Fprintf(io.err, "%s: %s\n", name, err)
		return 1
	}
	return 0
}

func programs() map[string]func(d *disk, args []string, io streams) error {
	return map[string]func(*disk, []string, streams) error{
		"base64": decode64, "bash": script, "cat": cat, "chmod": chmod, "date": date, "echo": echo, "gunzip": gunzip, "gzip": gunzip,
		"install": install,
		"printf":  printf, "rm": remove, "sh": script, "systemctl": systemctl, "tee": tee, "touch": touch,
	}
}

// operands are the arguments that are no options.
func operands(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" })
}

func input(d *disk, files []string, in io.Reader) ([]byte, error) {
	if len(files) == 0 {
		return readAll(in)
	}
	var out []byte
	for _, name := range files {
		if name == "-" {
			data, err := readAll(in)
			if err != nil {
				return nil, err
			}
			out = append(out, data...)
			continue
		}
		f, ok := d.file(name)
		if !ok {
			return nil, fmt.Errorf("%s: No such file or directory", name)
		}
		out = append(out, f.Data...)
	}
	return out, nil
}

func cat(d *disk, args []string, io streams) error {
	data, err := input(d, operands(args), io.in)
	if err != nil {
		return err
	}
	_, err = io.out.Write(data)
	return err
}

func decode64(d *disk, args []string, io streams) error {
	if !slices.ContainsFunc(args, func(a string) bool {
		return a == "-d" || a == "-D" || a == "--decode" || a == "-di" || a == "-id"
	}) {
		return fmt.Errorf("only -d is known to the simulated machine")
	}
	data, err := input(d, operands(args), io.in)
	if err != nil {
		return err
	}
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
	if err != nil {
		return fmt.Errorf("invalid input")
	}
	_, err = io.out.Write(out)
	return err
}

func gunzip(d *disk, args []string, io streams) error {
	data, err := input(d, operands(args), io.in)
	if err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("stdin: not in gzip format")
	}
	out, err := readAll(r)
	if err != nil {
		return err
	}
	_, err = io.out.Write(out)
	return err
}

func echo(_ *disk, args []string, io streams) error {
	end := "\n"
	for len(args) > 0 && (args[0] == "-n" || args[0] == "-e" || args[0] == "-E") {
		if args[0] == "-n" {
			end = ""
		}
		args = args[1:]
	}
	_, err := fmt.Fprint(io.out, strings.Join(args, " ")+end)
	return err
}

// printf knows the formats %s and %b, and the escapes \n and \t.
func printf(_ *disk, args []string, io streams) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: printf format [arguments]")
	}
	format := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(args[0])
	values := args[1:]
	for {
		var out strings.Builder
		rest := format
		for {
			before, after, ok := strings.Cut(rest, "%")
			out.WriteString(before)
			if !ok || after == "" {
				break
			}
			switch after[0] {
			case 's', 'b':
				if len(values) > 0 {
					out.WriteString(values[0])
					values = values[1:]
				}
			case '%':
				out.WriteByte('%')
			default:
				return fmt.Errorf("%%%c: the simulated machine knows %%s and %%b", after[0])
			}
			rest = after[1:]
		}
		if _, err := fmt.Fprint(io.out, out.String()); err != nil || len(values) == 0 || !strings.Contains(format, "%") {
			return err
		}
	}
}

// date prints a constant, since nothing reads it: the simulated machine has no clock of its own.
func date(_ *disk, _ []string, io streams) error {
	_, err := fmt.Fprintln(io.out, "Thu Jan  1 00:00:00 UTC 1970")
	return err
}

func chmod(d *disk, args []string, _ streams) error {
	args = operands(args)
	if len(args) < 2 {
		return fmt.Errorf("missing operand")
	}
	mode, err := strconv.ParseUint(args[0], 8, 12)
	if err != nil {
		return fmt.Errorf("invalid mode: '%s'; the simulated machine knows octal numbers", args[0])
	}
	for _, name := range args[1:] {
		f, ok := d.file(name)
		if !ok {
			return fmt.Errorf("cannot access '%s': No such file or directory", name)
		}
		f.Mode = fs.FileMode(mode)
		d.machine.Files[path.Clean(name)] = f
	}
	return nil
}

// install copies a file and gives it a mode.
func install(d *disk, args []string, _ streams) error {
	mode := uint64(0o755)
	var names []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-m" && i+1 < len(args):
			var err error
			if mode, err = strconv.ParseUint(args[i+1], 8, 12); err != nil {
				return fmt.Errorf("invalid mode '%s'; the simulated machine knows octal numbers", args[i+1])
			}
			i++
		case a == "-D":
		case strings.HasPrefix(a, "-"):
			return fmt.Errorf("the simulated machine knows -m and -D, not %s", a)
		default:
			names = append(names, a)
		}
	}
	if len(names) != 2 {
		return fmt.Errorf("want two files, have %d", len(names))
	}
	source, ok := d.file(names[0])
	if !ok && names[0] != "/dev/null" {
		return fmt.Errorf("cannot stat '%s': No such file or directory", names[0])
	}
	d.machine.Files[path.Clean(names[1])] = File{Data: source.Data, Mode: fs.FileMode(mode)}
	return nil
}

func touch(d *disk, args []string, _ streams) error {
	for _, name := range operands(args) {
		if _, ok := d.file(name); !ok {
			d.machine.Files[path.Clean(name)] = File{Mode: newFileMode}
		}
	}
	return nil
}

func remove(d *disk, args []string, _ streams) error {
	for _, name := range operands(args) {
		delete(d.machine.Files, path.Clean(name))
	}
	return nil
}

func tee(d *disk, args []string, io streams) error {
	data, err := readAll(io.in)
	if err != nil {
		return err
	}
	for _, name := range operands(args) {
		w, done := d.open(name, slices.Contains(args, "-a"))
		_, err = w.Write(data)
		done()
		if err != nil {
			return err
		}
	}
	_, err = io.out.Write(data)
	return err
}

// script starts a script of the image; one that custom data has written runs in the same
// shell's way.
func script(d *disk, args []string, io streams) error {
	args = operands(args)
	if len(args) == 0 {
		return fmt.Errorf("the simulated machine runs scripts by path only")
	}
	if f, ok := d.machine.Files[path.Clean(args[0])]; ok {
		code, err := d.run(string(f.Data))
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		return err
	}
	if _, ok := d.file(args[0]); !ok {
		return fmt.Errorf("%s: No such file or directory", args[0])
	}
	d.start(path.Clean(args[0]))
	return nil
}

func systemctl(d *disk, args []string, _ streams) error {
	args = operands(args)
	if len(args) == 0 {
		return nil
	}
	switch args[0] {
	case "start", "restart", "reload-or-restart":
		for _, unit := range args[1:] {
			if !strings.Contains(unit, ".") {
				unit += ".service"
			}
			if _, ok := d.file("/etc/systemd/system/" + unit); !ok {
				return fmt.Errorf("Failed to start %s: Unit %s not found.", unit, unit) //nolint:staticcheck,revive // systemd's own words
			}
			d.start(unit)
		}
	case "enable", "disable", "stop", "mask", "unmask", "daemon-reload":
	default:
		return fmt.Errorf("the simulated machine knows no %s", args[0])
	}
	return nil
}

// unary is a condition of one operand; known is false for an operator that the
// simulated machine does not know.
func (s *shell) unary(operator, operand string) (holds, known bool) {
	f, exists := s.disk.file(operand)
	switch operator {
	case "-f", "-e", "-r":
		return exists, true
	case "-x":
		return exists && f.Mode&0o100 != 0, true
	case "-s":
		return exists && len(f.Data) > 0, true
	case "-n":
		return operand != "", true
	case "-z":
		return operand == "", true
	}
	return false, false
}

// test is the condition of an if.
func (s *shell) test(name string, args []string, io streams) int {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			fmt.Fprintln(io.err, "bash: [: missing `]'")
			return 2
		}
		args = args[:len(args)-1]
	}
	if len(args) > 0 && args[0] == "!" {
		switch s.test("test", args[1:], io) {
		case 0:
			return 1
		case 1:
			return 0
		}
		return 2
	}
	var holds bool
	switch {
	case len(args) == 1:
		holds = args[0] != ""
	case len(args) == 2:
		var known bool
		if holds, known = s.unary(args[0], args[1]); !known {
			fmt.Fprintf(io.err, "bash: [: %s: the simulated machine knows -e -f -n -r -s -x -z\n", args[0])
			return 2
		}
	case len(args) == 3 && (args[1] == "=" || args[1] == "=="):
		holds = args[0] == args[2]
	case len(args) == 3 && args[1] == "!=":
		holds = args[0] != args[2]
	default:
		fmt.Fprintln(io.err, "bash: [: too many arguments")
		return 2
	}
	if holds {
		return 0
	}
	return 1
}
