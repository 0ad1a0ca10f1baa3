package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
)

// setUp starts an API server with the definitions of the provider, and nothing else. The
// suites of AKSNodeClass bring a set-up that builds a whole simulated Azure first, for
// which the provider's dependencies take ten minutes to compile; no spec uses it.
//
//go:embed testdata/setup.txt
var setUp string

// packageOfSetUp is the name of the package in setUp.
const packageOfSetUp = "PACKAGE"

// Overlay writes the file for "go test -overlay" of a suite whose module is at root, and
// returns its path. The definitions that nap ships take the place of those of the same
// name in the module; it is an error if none does.
func (w *Workspace) Overlay(s Suite, root string) (string, error) {
	dir := filepath.Join(w.Dir, "overlay", s.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the overlay of suite %s: %w", s.Name, err)
	}
	replace := map[string]string{}
	// The suffix keeps what is written below a Go module from being part of it.
	put := func(place string, content []byte) error {
		file := filepath.Join(dir, filepath.Base(place)+".overlay")
		replace[place] = file
		return os.WriteFile(file, content, 0o644)
	}
	ours, err := definitions()
	if err != nil {
		return "", err
	}
	for _, folder := range s.Definitions {
		for name, text := range ours {
			place := filepath.Join(root, folder, name)
			if _, err := os.Stat(place); err != nil {
				continue // the module does not have this kind
			}
			if err := put(place, text); err != nil {
				return "", fmt.Errorf("write the overlay of suite %s: %w", s.Name, err)
			}
		}
	}
	if len(replace) == 0 {
		return "", fmt.Errorf("suite %s: the module embeds none of the definitions that nap ships in %s",
			s.Name, strings.Join(s.Definitions, ", "))
	}
	if s.SetUp != "" {
		text := strings.ReplaceAll(setUp, packageOfSetUp, filepath.Base(s.Package)+"_test")
		if err := put(filepath.Join(root, s.Package, s.SetUp), []byte(text)); err != nil {
			return "", fmt.Errorf("write the overlay of suite %s: %w", s.Name, err)
		}
	}
	for _, name := range s.LeftOut {
		replace[filepath.Join(root, s.Package, name)] = ""
	}
	return writeOverlay(s, dir, replace)
}

// changes are the flag with which Go adds the file to the suite's module that it lacks, and
// reads other texts in its package; nil for suites that need neither.
func (w *Workspace) changes(s Suite) ([]string, error) {
	if s.Added == "" && len(s.Replaced) == 0 {
		return nil, nil
	}
	dir := filepath.Join(w.Dir, "overlay", s.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the overlay of suite %s: %w", s.Name, err)
	}
	texts := map[string]string{filepath.Join(w.link(s), s.Added): s.AddedText}
	files, err := filepath.Glob(filepath.Join(w.link(s), s.Package, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("find the files of suite %s: %w", s.Name, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the files of suite %s: %w", s.Name, err)
		}
		changed := string(text)
		for theirs, ours := range s.Replaced { // none is part of another: order does not matter
			changed = strings.ReplaceAll(changed, theirs, ours)
		}
		if changed != string(text) {
			texts[file] = changed
		}
	}
	replace := map[string]string{}
	for place, text := range texts {
		replace[place] = filepath.Join(dir, filepath.Base(place)+".overlay")
		if err := os.WriteFile(replace[place], []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write the overlay of suite %s: %w", s.Name, err)
		}
	}
	overlay, err := writeOverlay(s, dir, replace)
	return []string{"-overlay=" + overlay}, err
}

func writeOverlay(s Suite, dir string, replace map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write the overlay of suite %s: %w", s.Name, err)
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o644)
}

// definitions are the definitions that nap ships, as YAML by the name of the file in
// which their modules embed them: GROUP_PLURAL.yaml.
func definitions() (map[string][]byte, error) {
	all, err := crds.All()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, d := range all {
		text, err := yaml.Marshal(withoutStatus(d))
		if err != nil {
			return nil, fmt.Errorf("write definition %s: %w", d.Name, err)
		}
		out[d.Spec.Group+"_"+d.Spec.Names.Plural+".yaml"] = text
	}
	return out, nil
}

// withoutStatus is the definition as a file has it.
func withoutStatus(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	return d
}
