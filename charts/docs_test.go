package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/pages"
)

var documentedMake = regexp.MustCompile(`(?m)^    make ([a-z-]+)`)

// samples are values for the variables that the pages use.
func samples(name string) string {
	return map[string]string{
		"REGISTRY": "registry.example", "VERSION": "v1.2.3", "CLUSTER_NAME": "cluster", "ARM_RESOURCE_GROUP": "group",
		"AZURE_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000001", "CLIENT_ID": "client",
	}[name]
}

// documented are the arguments of "template" for every command of helm on the pages that
// installs or upgrades a release.
func documented(t *testing.T) [][]string {
	t.Helper()
	var out [][]string
	for _, c := range pages.By(t, "..", "TestDocumentedCommandsOfHelmRender") {
		text := os.Expand(c.Text, samples)
		if strings.Contains(text, "=,") {
			t.Errorf("%s: a variable has no sample", &c)
		}
		args := strings.Fields(text)[2:] // without helm upgrade
		if slices.Contains(args, "--reuse-values") {
			t.Errorf("%s: an upgrade lacks what is new in the chart: want --reset-then-reuse-values", &c)
		}
		// What there was before stands for --reset-then-reuse-values.
		if i := slices.Index(args, "--reset-then-reuse-values"); i >= 0 {
			args = slices.Replace(args, i, i+1, "--set", strings.Join(least(), ","))
		}
		args = slices.DeleteFunc(args, func(a string) bool { return a == "--install" || a == "--create-namespace" })
		for i := range args {
			args[i] = strings.Replace(args[i], "charts/", "", 1)
		}
		out = append(out, append([]string{"template"}, args...))
	}
	return out
}

// TestDocumentedTargetsOfMakeExist: pages name targets of the Makefile.
func TestDocumentedTargetsOfMakeExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documentedMake.FindAllStringSubmatch(string(text), -1) {
			if found++; !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s", file, m[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d targets were found", found)
	}
}

func TestDocumentedCommandsOfHelmRender(t *testing.T) {
	for _, args := range documented(t) {
		text, err := command(args...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if len(objects(t, text)) == 0 {
			t.Errorf("%v renders nothing", args)
		}
	}
}
