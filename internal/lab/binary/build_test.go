package binary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStampCoversSourcesOnly(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"go.mod", "go.sum", "lab/go.mod", "lab/main.go", "internal/x/x.go", "api/api.go", "charts/nap/values.yaml"} {
		writeFile(t, filepath.Join(root, file), "first\n")
	}
	stamp := func() string {
		s, err := sourceStamp(root)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := stamp()
	for _, file := range []string{"lab/main_test.go", "internal/x/README.md", "internal/x/testdata/a.txt", "docs/a.txt"} {
		writeFile(t, filepath.Join(root, file), "hello\n")
		if stamp() != first {
			t.Errorf("%s changed the stamp and would cause a build", file)
		}
	}
	for _, file := range []string{"lab/main.go", "lab/go.mod", "go.sum", "internal/x/x.go", "internal/x/role.yaml", "lab/etcd/etcd.go", "charts/nap/values.yaml"} {
		before := stamp()
		writeFile(t, filepath.Join(root, file), "changed\n")
		if stamp() == before {
			t.Errorf("a change of %s did not change the stamp", file)
		}
	}
}

func TestBinaryReportsKubernetesVersion(t *testing.T) {
	flags, err := linkerFlags([]byte("require (\n\tk8s.io/kubernetes v1.37.1\n)\nreplace k8s.io/api => k8s.io/api v0.37.1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.1",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.1",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q lack %q", flags, want)
		}
	}
	if _, err := linkerFlags([]byte("module x\n")); err == nil {
		t.Error("a module without Kubernetes was accepted")
	}
}

func TestBuildOutputProgressAndErrors(t *testing.T) {
	output := "go: downloading k8s.io/api v0.37.1\nk8s.io/api/core/v1\nfmt\n# example.com/lab\n./main.go:3:1: syntax error\n"
	got := watchBuild(strings.NewReader(output), time.Now(), &remaining{}, func(string) {})
	want := []string{"go: downloading k8s.io/api v0.37.1", "# example.com/lab", "./main.go:3:1: syntax error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// A machine whose Go is older than go.mod asks for, and told to fetch no other.
func TestBuildFetchesTheGoThatModulesName(t *testing.T) {
	tools := t.TempDir()
	writeFile(t, filepath.Join(tools, "go"), "#!/bin/sh\necho toolchain is $GOTOOLCHAIN >&2; exit 1\n")
	if err := os.Chmod(filepath.Join(tools, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools)
	t.Setenv("GOTOOLCHAIN", "local")
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "go.mod"), "module x\n\nrequire (\n\tk8s.io/kubernetes v1.37.1\n)\n")
	err := compile(t.Context(), source, filepath.Join(t.TempDir(), Name), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "toolchain is auto") {
		t.Errorf("the build says %v, want that it may fetch another Go", err)
	}
}

func TestBinaryIsRebuiltWhenSourcesChange(t *testing.T) {
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "lab", "go.mod"), "module "+modulePath+"/lab\n")
	for _, file := range []string{"go.mod", "go.sum", "internal/x.go", "api/x.go", "charts/x.yaml"} {
		writeFile(t, filepath.Join(root, file), "x\n")
	}
	writeFile(t, filepath.Join(root, "bin", Name), "a binary")
	stamp, err := sourceStamp(root)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "bin", Name+".stamp"), stamp)
	t.Setenv(Variable, "")
	t.Chdir(filepath.Join(root, "lab"))

	path, err := Ensure(t.Context(), func(line string) { t.Errorf("said %q, want silence", line) })
	if err != nil || filepath.Base(filepath.Dir(path)) != "bin" {
		t.Errorf("Ensure = %q, %v, want the built one", path, err)
	}
	writeFile(t, filepath.Join(root, "lab", "main.go"), "package main\n")
	// This module requires no Kubernetes, so an attempt to build it fails early.
	if _, err := Ensure(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), "k8s.io/kubernetes") {
		t.Errorf("Ensure after a change = %v, want an attempt to build", err)
	}
}

func TestNamedBinaryIsUsedUnchanged(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "mine")
	t.Setenv(Variable, binary)
	if _, err := Ensure(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), Variable) {
		t.Errorf("error = %v, want one that names %s", err, Variable)
	}
	writeFile(t, binary, "")
	if got, err := Ensure(t.Context(), func(string) {}); err != nil || got != binary {
		t.Errorf("Ensure = %q, %v, want %q", got, err, binary)
	}
}
