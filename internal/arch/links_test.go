package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// code is what stands between backticks: no link is one there.
	code   = regexp.MustCompile("`[^`\n]*`")
	noSlug = regexp.MustCompile("[^a-z0-9 _-]")
)

// anchors are the anchors of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		out[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return out
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), "x"), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			target := page
			if l[1] != "" {
				target = filepath.Join(filepath.Dir(page), l[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, l[1])
				continue
			}
			if l[2] == "" {
				continue
			}
			linked, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(linked))[l[2]] {
				t.Errorf("%s links to %s#%s, and no heading there has this anchor", page, l[1], l[2])
			}
		}
	}
}

// pages are the documentation, as paths from here.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

var (
	section = regexp.MustCompile(`docs/planner\.md, sections? ("[^.]+")\.`)
	quoted  = regexp.MustCompile(`"([^"]+)"`)
	comment = regexp.MustCompile(`\n// ?`)
)

func TestPlannerPackagesNameTheirSection(t *testing.T) {
	page, err := os.ReadFile("../../docs/planner.md")
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(string(page), -1) {
		titles[h[1]] = true
	}
	for _, p := range packages(t) {
		room, ok := strings.CutPrefix(p.ImportPath, module+"internal/planner/")
		if !ok || len(p.GoFiles) == 0 || room == "plannertest" { // the tests' harness
			continue
		}
		named := 0
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join("../planner", room, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range section.FindAllStringSubmatch(comment.ReplaceAllString(string(text), " "), -1) {
				for _, title := range quoted.FindAllStringSubmatch(s[1], -1) {
					named++
					if !titles[title[1]] {
						t.Errorf("%s names section %q of docs/planner.md, which has no such heading", p.ImportPath, title[1])
					}
				}
			}
		}
		if named == 0 {
			t.Errorf("%s does not say which section of docs/planner.md explains it: end its package comment with `See "+
				"docs/planner.md, section \"...\".`", p.ImportPath)
		}
	}
}
