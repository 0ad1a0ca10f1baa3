// Package charts has nap's Helm charts within it, and Helm's own library lints, renders
// and packages them, for nap enable, the lab and the tests.
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

// Rendered is what becomes of a Release.
type Rendered struct {
	Chart *chartv2.Chart
	// Values are all that was given, without the chart's own.
	Values map[string]any
	// Manifest are the objects as YAML documents, Notes the chart's for people.
	Manifest, Notes string
}

// Template reads a Release as JSON and writes the objects that its chart makes of it,
// as YAML documents.
func Template(in io.Reader, out io.Writer) error {
	var r Release
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("reading what to render: %w", err)
	}
	rendered, err := r.Render()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, rendered.Manifest)
	return err
}

// Render makes the objects of a release. Values that the chart does not take are an
// error which names them.
func (r *Release) Render() (*Rendered, error) {
	chart, err := embedded(r.Chart)
	if err != nil {
		return nil, err
	}
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	if len(r.Variables) > 0 {
		settings, err := fromVariables(chart, r.Variables)
		if err != nil {
			return nil, err
		}
		values = commonutil.MergeTables(values, settings)
	}
	if r.Profile != "" {
		text, err := files.ReadFile(path.Join(r.Chart, "profiles", r.Profile+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("chart %s has no profile %q: %w", r.Chart, r.Profile, err)
		}
		profile := map[string]any{}
		if err := yaml.Unmarshal(text, &profile); err != nil {
			return nil, fmt.Errorf("profile %q of chart %s: %w", r.Profile, r.Chart, err)
		}
		values = commonutil.MergeTables(values, profile)
	}
	out := &Rendered{Chart: chart, Values: values}
	var objects, notes strings.Builder
	if err := write(chart, r.Name, options{namespace: r.Namespace, kube: r.Kubernetes}, values, &objects); err != nil {
		return nil, err
	}
	if err := write(chart, r.Name, options{namespace: r.Namespace, kube: r.Kubernetes, notes: true}, values, &notes); err != nil {
		return nil, err
	}
	out.Manifest, out.Notes = objects.String(), notes.String()
	return out, nil
}

// Overlay lays values over others: what is in both, and not itself a table, is as in the
// former. The latter are changed.
func Overlay(over, values map[string]any) map[string]any { return commonutil.MergeTables(over, values) }
