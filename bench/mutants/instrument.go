package mutants

import (
	"context"
	_ "embed"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// switches is the code that says which mutant is on.
//
//go:embed switches.go.txt
var switches string

// instrumented is a package with a switch for each of its mutants.
type instrumented struct {
	overlay string
	// numbers are those of the switches, by the mutants' names.
	numbers map[string]int
}

// instrument writes a copy of the package in folder dir with switches for its mutants, as
// an overlay. Mutants that the compiler complains of get none.
func (r Runner) instrument(ctx context.Context, dir string, all []Mutant) (*instrumented, error) {
	switched := map[int]Mutant{}
	for i, m := range all {
		if len(m.edits) > 0 {
			switched[i+1] = m
		}
	}
	for {
		overlay, err := r.writeSwitches(dir, switched, len(all))
		if err != nil {
			return nil, err
		}
		out, err := r.command(ctx, "build", "-gcflags=-e", "-overlay", overlay, "./"+dir).CombinedOutput()
		if err == nil {
			numbers := map[string]int{}
			for n, m := range switched {
				numbers[m.Name()] = n
			}
			return &instrumented{overlay: overlay, numbers: numbers}, nil
		}
		if !leaveOut(switched, out) {
			return nil, fmt.Errorf("%s does not compile with switches for its mutants: %w\n%s", dir, err, out)
		}
	}
}

// writeSwitches writes the files of the package with the switches of the given mutants.
func (r Runner) writeSwitches(dir string, switched map[int]Mutant, most int) (string, error) {
	byFile := map[string]map[int]Mutant{}
	for n, m := range switched {
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]Mutant{}
		}
		byFile[m.File][n] = m
	}
	files := map[string][]byte{}
	var name string
	for file, some := range byFile {
		path := filepath.Join(r.Root, filepath.FromSlash(file))
		source, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, source, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		name, files[path] = tree.Name.Name, instrument(source, some)
	}
	if name != "" {
		code := strings.NewReplacer("PACKAGE", name, "COUNT", strconv.Itoa(most)).Replace(switches)
		files[filepath.Join(r.Root, filepath.FromSlash(dir), "mutant_switches.go")] = []byte(code)
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
		lines[filepath.Base(string(at[1]))+":"+string(at[2])] = true
	}
	blamed := func(m Mutant) bool { return lines[filepath.Base(m.File)+":"+strconv.Itoa(m.Line)] }
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
