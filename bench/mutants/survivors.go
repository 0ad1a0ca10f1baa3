package mutants

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// separator stands between the name of a mutant and the reason why it may survive.
const separator = " :: "

// Survivors are the mutants that may survive, by name, each with its reason.
type Survivors map[string]string

// ReadSurvivors reads a file with a mutant on each line: its name, " :: ", the reason.
// Empty lines and those that begin with # are left out.
func ReadSurvivors(path string) (Survivors, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := Survivors{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, separator)
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: %q states no reason: write NAME%sREASON", path, n, line, separator)
		}
		if out[name] != "" {
			return nil, fmt.Errorf("%s:%d: %q is there twice: remove one", path, n, name)
		}
		out[name] = reason
	}
	return out, lines.Err()
}

// Stale returns the names that are no mutant of the given ones though their file is among
// them: the code has changed, and so must the list.
func (s Survivors) Stale(all []Mutant) []string {
	files, names := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		files[m.File], names[m.Name()] = true, true
	}
	var out []string
	for name := range s {
		file, _, _ := strings.Cut(name, " ")
		if files[file] && !names[name] {
			out = append(out, name)
		}
	}
	return out
}
