// Package charts has nap's Helm charts within it, and Helm's own library lints, renders
// and packages them. It has a module of its own, so that neither Helm nor the versions
// of Kubernetes' libraries that it wants reach nap's programs; the lab has both anyway.
package charts

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

//go:embed all:nap all:nap-crd
var files embed.FS

// embedded loads a chart that is within the program.
func embedded(name string) (*chartv2.Chart, error) {
	var all []*archive.BufferedFile
	err := fs.WalkDir(files, name, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(file)
		all = append(all, &archive.BufferedFile{Name: strings.TrimPrefix(file, name+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	return loader.LoadFiles(all)
}

// Release says what of a chart is to be rendered.
type Release struct {
	// Chart is "nap" or "nap-crd".
	Chart string `json:"chart"`
	// Name and Namespace are the release's.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Profile is the name of a file of values that comes with the chart, without its
	// extension, or empty.
	Profile string `json:"profile,omitempty"`
	// Values count before Variables, the controller's as NAME=value, these before the
	// profile's values, and those before the chart's own.
	Values    map[string]any `json:"values,omitempty"`
	Variables []string       `json:"variables,omitempty"`
	// Kubernetes is the version of the API server, such as "v1.37.1", or empty for the one
	// that Helm takes for granted.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Template reads a Release as JSON and writes the objects that its chart makes of it,
// as YAML documents.
func Template(in io.Reader, out io.Writer) error {
	var r Release
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("reading what to render: %w", err)
	}
	chart, err := embedded(r.Chart)
	if err != nil {
		return err
	}
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	if len(r.Variables) > 0 {
		settings, err := fromVariables(chart, r.Variables)
		if err != nil {
			return err
		}
		values = commonutil.MergeTables(values, settings)
	}
	if r.Profile != "" {
		text, err := files.ReadFile(path.Join(r.Chart, "profiles", r.Profile+".yaml"))
		if err != nil {
			return fmt.Errorf("chart %s has no profile %q: %w", r.Chart, r.Profile, err)
		}
		profile := map[string]any{}
		if err := yaml.Unmarshal(text, &profile); err != nil {
			return fmt.Errorf("profile %q of chart %s: %w", r.Profile, r.Chart, err)
		}
		values = commonutil.MergeTables(values, profile)
	}
	return write(chart, r.Name, options{namespace: r.Namespace, kube: r.Kubernetes}, values, out)
}
