package mutants

import (
	"context"
	_ "embed"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// switches is the code that says which mutant is on.
//
//go:embed switches.go.txt
var switches string

// instrumented is packages with a switch for each of their mutants.
type instrumented struct {
	overlay string
	// numbers are those of the switches, by the mutants' names.
	numbers map[string]int
}

// instrument writes copies of the mutants' files with switches, as an overlay. Mutants that
// the compiler complains of get none.
func (r Runner) instrument(ctx context.Context, all []Mutant) (*instrumented, error) {
	switched, build := map[int]Mutant{}, []string{"build", "-gcflags=-e", "-overlay", ""}
	for i, m := range all {
		if len(m.edits) > 0 {
			switched[i+1] = m
		}
		if dir := "./" + path.Dir(m.File); build[len(build)-1] != dir {
			build = append(build, dir)
		}
	}
	for {
		overlay, err := r.writeSwitches(switched, len(all))
		if err != nil {
			return nil, err
		}
		build[3] = overlay
		out, err := r.command(ctx, build...).CombinedOutput()
		if err == nil {
			numbers := map[string]int{}
			for n, m := range switched {
				numbers[m.Name()] = n
			}
			return &instrumented{overlay: overlay, numbers: numbers}, nil
		}
		if !leaveOut(switched, out) {
			return nil, fmt.Errorf("the code does not compile with switches for its mutants: %w\n%s", err, out)
		}
	}
}

// writeSwitches writes files with the switches of the given mutants, and beside them in
// each package the code of the switches.
func (r Runner) writeSwitches(switched map[int]Mutant, most int) (string, error) {
	byFile := map[string]map[int]Mutant{}
	for n, m := range switched {
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]Mutant{}
		}
		byFile[m.File][n] = m
	}
	files := map[string][]byte{}
	for file, some := range byFile {
		name := filepath.Join(r.Root, filepath.FromSlash(file))
		source, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		files[name] = instrument(source, some)
		code := strings.NewReplacer("PACKAGE", tree.Name.Name, "COUNT", strconv.Itoa(most)).Replace(switches)
		files[filepath.Join(filepath.Dir(name), "mutant_switches.go")] = []byte(code)
	}
	folder, err := os.MkdirTemp(r.Scratch, "switches")
	if err != nil {
		return "", err
	}
	return writeOverlay(folder, files)
}

var complaint = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// leaveOut drops the mutants that a compiler's complaints may be of, and says whether there
// are any. Fields of one literal go together.
func leaveOut(switched map[int]Mutant, complaints []byte) bool {
	lines, literals := map[string]bool{}, map[*literal]bool{}
	for _, at := range complaint.FindAllSubmatch(complaints, -1) {
		lines[path.Clean(filepath.ToSlash(string(at[1])))+":"+string(at[2])] = true
	}
	blamed := func(m Mutant) bool { return lines[m.File+":"+strconv.Itoa(m.Line)] }
	for _, m := range switched {
		if m.literal != nil && blamed(m) {
			literals[m.literal] = true
		}
	}
	before := len(switched)
	for n, m := range switched {
		if blamed(m) || literals[m.literal] {
			delete(switched, n)
		}
	}
	return len(switched) < before
}
