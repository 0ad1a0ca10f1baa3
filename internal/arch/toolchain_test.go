package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestModulesNameOneGoRelease keeps the standard library from being compiled once per
// module, and every release but the one that is tested out of the builds.
func TestModulesNameOneGoRelease(t *testing.T) {
	release := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(text)
		if m == nil || strings.Contains(string(text), "\ntoolchain ") {
			t.Fatalf("%s names no Go release, or a toolchain beside it", file)
		}
		return string(m[1])
	}
	want := release("../../go.mod")
	for _, module := range []string{"lab", "tools", "tools/controller-gen"} {
		if got := release("../../" + module + "/go.mod"); got != want {
			t.Errorf("module %s is built with Go %s, the main module with %s", module, got, want)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	minor := want[:strings.LastIndex(want, ".")]
	if !strings.Contains(string(readme), "Go ("+minor+")") {
		t.Errorf("README.md does not ask for Go (%s)", minor)
	}
	// Where Go is told to fetch no other release, that of go.mod would be refused.
	for file, line := range map[string]string{"Makefile": "export GOTOOLCHAIN := auto\n", ".ci/run": "\nexport GOTOOLCHAIN=auto "} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s lacks %q", file, strings.TrimSpace(line))
		}
	}
}

// TestModulesKeepPaceWithMain holds that a module which builds on the main one names no release
// older than that one's: Go refuses to build it then, which shows only where it is built.
func TestModulesKeepPaceWithMain(t *testing.T) {
	releases := func(file string) map[string]string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^\t?(?:require )?(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	want := releases("../../go.mod")
	checked := 0
	for _, module := range []string{"lab", "tools/takeover"} {
		for name, has := range releases("../../" + module + "/go.mod") {
			if want[name] == "" {
				continue
			}
			checked++
			if !version.MustParseSemantic(has).AtLeast(version.MustParseSemantic(want[name])) {
				t.Errorf("module %s has %s %s, older than %s of the main module: go mod tidy in it", module, name, has, want[name])
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d requirements were compared, want many", checked)
	}
}
