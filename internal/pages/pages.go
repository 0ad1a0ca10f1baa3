// Package pages finds the commands that the documentation shows, and knows which test runs
// each of them. A test asks for its own and runs them, so that the table says what is so;
// a law of this package is that no command is left out.
//
// Start with [Of].
package pages

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Command is a line of a page that runs nap, kubectl, az or helm, or exports variables for
// them.
type Command struct {
	// Page is the file, from the root of the repository; Section is the heading above.
	Page, Section string
	Line          int
	// Text is the command as it is typed, without the comment behind it.
	Text string
}

func (c *Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// starts finds one of the programs where a command can begin: at the start, behind variables
// that are set for it, in a pipe, in a subshell.
var starts = regexp.MustCompile(`(?:^(?:\w+=\S+ )*|[|;&(] ?)(?:bin/)?(?:nap|nap-controller|kubectl|az|helm|export) `)

// Of are the commands that the test which asks runs, in the order of the pages. root is the
// way from the test's folder to the root of the repository.
func Of(t testing.TB, root string) []Command {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	return By(t, root, test)
}

// By are the commands that a test runs, for one that does something else with them.
func By(t testing.TB, root, test string) []Command {
	t.Helper()
	all, err := commands(root)
	if err != nil {
		t.Fatal(err)
	}
	var out []Command
	for _, c := range all {
		for _, r := range runs() {
			if r.test == test && r.has(&c) {
				out = append(out, c)
				break
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no page shows a command that %s runs", test)
	}
	return out
}

// commands are those of all pages.
func commands(root string) ([]Command, error) {
	found := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	var out []Command
	for _, file := range found {
		page, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		of, err := inPage(file, filepath.ToSlash(page))
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// inPage are the commands of one page: what runs a program among the lines that are
// indented as code.
func inPage(file, page string) ([]Command, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	var out []Command
	section := ""
	lines := bufio.NewScanner(text)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			section = strings.TrimLeft(line, "# ")
		}
		code, is := strings.CutPrefix(line, "    ")
		if !is {
			continue
		}
		code, _, _ = strings.Cut(code, " #")
		if code = strings.TrimSpace(code); starts.MatchString(code + " ") {
			out = append(out, Command{Page: page, Section: section, Line: n, Text: code})
		}
	}
	return out, lines.Err()
}
