package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	documentedHelm = regexp.MustCompile(`(?m)^    helm ([a-z]+ [^\n]*)$`)
	documentedMake = regexp.MustCompile(`(?m)^    make ([a-z-]+)`)
)

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
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range documentedHelm.FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(os.Expand(found[1], samples))
			if strings.Contains(os.Expand(found[1], samples), "=,") {
				t.Errorf("%s: helm %s: a variable has no sample", page, found[1])
			}
			if args[0] == "uninstall" || args[0] == "rollback" {
				continue // they render nothing
			}
			if args[0] != "upgrade" {
				t.Errorf("%s: helm %s: not known here", page, found[1])
				continue
			}
			// What there was before stands for --reuse-values.
			if i := slices.Index(args, "--reuse-values"); i >= 0 {
				args = slices.Replace(args, i, i+1, "--set", strings.Join(least(), ","))
			}
			args = slices.DeleteFunc(args[1:], func(a string) bool { return a == "--install" || a == "--create-namespace" })
			for i := range args {
				args[i] = strings.Replace(args[i], "charts/", "", 1)
			}
			out = append(out, append([]string{"template"}, args...))
		}
		for _, found := range documentedMake.FindAllStringSubmatch(string(text), -1) {
			makefile, err := os.ReadFile("../Makefile")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(makefile), "\n"+found[1]+":") {
				t.Errorf("%s: there is no target %s", page, found[1])
			}
		}
	}
	if len(out) < 6 {
		t.Fatalf("only %d commands were found", len(out))
	}
	return out
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
