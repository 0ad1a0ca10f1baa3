package charts

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// options are the flags of all commands.
type options struct {
	namespace, version, destination, kube string
	values, set, apis                     list
	notes                                 bool
}

// parse reads flags that may stand between and behind the arguments.
func parse(args []string) (options, []string, error) {
	var o options
	fs := flag.NewFlagSet("helm", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.namespace, "namespace", "default", "")
	fs.StringVar(&o.version, "version", "", "")
	fs.StringVar(&o.destination, "destination", ".", "")
	fs.Var(&o.values, "values", "")
	fs.Var(&o.set, "set", "")
	fs.Var(&o.apis, "api-versions", "")
	fs.StringVar(&o.kube, "kube-version", "", "")
	fs.BoolVar(&o.notes, "notes", false, "")
	var rest []string
	for len(args) > 0 {
		if err := fs.Parse(args); err != nil {
			return options{}, nil, fmt.Errorf("reading the flags: %w", err)
		}
		if args = fs.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return o, rest, nil
}

// Run runs a command of the program charts with the arguments behind its name.
func Run(args []string, out io.Writer) error {
	o, rest, err := parse(args)
	if err != nil {
		return err
	}
	values, err := o.merged()
	if err != nil {
		return err
	}
	switch {
	case len(rest) == 2 && rest[0] == "lint":
		return lintChart(rest[1], o.namespace, values)
	case len(rest) == 3 && rest[0] == "template":
		return render(rest[1], rest[2], o, values, out)
	case len(rest) == 2 && rest[0] == "package":
		return pack(rest[1], o, out)
	}
	return errors.New("give lint CHART, template RELEASE CHART or package CHART")
}

// merged are the values of the files and then of the single settings.
func (o *options) merged() (map[string]any, error) {
	values := map[string]any{}
	for _, file := range o.values {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading values: %w", err)
		}
		more := map[string]any{}
		if err := yaml.Unmarshal(text, &more); err != nil {
			return nil, fmt.Errorf("reading values %s: %w", file, err)
		}
		values = commonutil.MergeTables(more, values)
	}
	for _, set := range o.set {
		if err := strvals.ParseInto(set, values); err != nil {
			return nil, fmt.Errorf("reading --set %s: %w", set, err)
		}
	}
	return values, nil
}

// lintChart takes warnings for errors.
func lintChart(dir, namespace string, values map[string]any) error {
	linter := lint.RunAll(dir, values, namespace)
	var faults []error
	for _, m := range linter.Messages {
		if m.Severity >= support.WarningSev {
			faults = append(faults, m)
		}
	}
	return errors.Join(faults...)
}

func render(release, dir string, o options, values map[string]any, out io.Writer) error {
	chart, err := loader.Load(dir)
	if err != nil {
		return fmt.Errorf("loading chart %s: %w", dir, err)
	}
	return write(chart, release, o, values, out)
}

// write renders a chart: its objects, or its notes.
func write(chart *chartv2.Chart, release string, o options, values map[string]any, out io.Writer) error {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, o.apis...)
	if o.kube != "" {
		version, err := common.ParseKubeVersion(o.kube)
		if err != nil {
			return fmt.Errorf("--kube-version %s: %w", o.kube, err)
		}
		capabilities.KubeVersion = *version
	}
	all, err := commonutil.ToRenderValues(chart, values,
		common.ReleaseOptions{Name: release, Namespace: o.namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return fmt.Errorf("values of chart %s: %w", chart.Name(), err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return fmt.Errorf("rendering chart %s: %w", chart.Name(), err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		if notes := path.Base(name) == "NOTES.txt"; notes != o.notes || text == "" || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		if o.notes {
			fmt.Fprintln(out, text)
			continue
		}
		fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n"))
	}
	return nil
}

func pack(dir string, o options, out io.Writer) error {
	chart, err := loader.Load(dir)
	if err != nil {
		return fmt.Errorf("loading chart %s: %w", dir, err)
	}
	if o.version != "" {
		chart.Metadata.Version, chart.Metadata.AppVersion = strings.TrimPrefix(o.version, "v"), o.version
	}
	if err := chart.Validate(); err != nil {
		return fmt.Errorf("chart %s: %w", dir, err)
	}
	file, err := util.Save(chart, o.destination)
	if err != nil {
		return fmt.Errorf("packaging chart %s: %w", dir, err)
	}
	fmt.Fprintln(out, file)
	return nil
}
