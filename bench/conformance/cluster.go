package conformance

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Selection says which specs of suites of kind Cluster to run, and how.
type Selection struct {
	Engine string
	Focus  string
	// Limit ends the run before the first spec that would begin later than that.
	Limit time.Duration
	// Again runs specs that have a result already.
	Again bool
	Speed float64
	Gates string
	// SpecTimeout is when a spec that hangs is ended.
	SpecTimeout time.Duration
}

// AddFlags defines a flag for each field.
func (o *Selection) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Engine, "engine", EngineNap, "engine of the controller: nap or karpenter")
	fs.StringVar(&o.Focus, "focus", "", "regular expression: run only specs whose name matches")
	fs.DurationVar(&o.Limit, "limit", 0, "begin no spec later than that; 0 for no limit")
	fs.BoolVar(&o.Again, "again", false, "run specs that have a result already")
	fs.Float64Var(&o.Speed, "speed", 20, "how many times faster than the real one the simulated Azure is")
	fs.StringVar(&o.Gates, "feature-gates", "NodeRepair=true,StaticCapacity=true,CapacityBuffer=true", "feature gates of the controller")
	fs.DurationVar(&o.SpecTimeout, "spec-timeout", 25*time.Minute, "end a spec after that")
}

//go:embed testdata/nodeclass.yaml
var defaultNodeClass []byte

//go:embed testdata/nodepool.yaml
var defaultNodePool []byte

// smallNodePool sells sizes of two cores alone. The specs of CapacityBuffer count nodes of
// that size, which they ask of KWOK by its names of sizes and of others by their NodePool.
//
//go:embed testdata/nodepool-small.yaml
var smallNodePool []byte

// twoSizesNodePool sells sizes of two and of eight cores. The specs of default spread
// constraints want four pods of one core on one node where nothing spreads them, and of
// these sizes one node is cheaper than several. They also want four zones: the NodePool
// names the three of the region and "0", which is that of machines without a zone.
//
//go:embed testdata/nodepool-two-sizes.yaml
var twoSizesNodePool []byte

// kwokNodePool annotates its nodes as KWOK's are: the driver of the suite dra lists devices
// on such nodes alone.
//
//go:embed testdata/nodepool-kwok.yaml
var kwokNodePool []byte

// nodePoolFor is the default NodePool of a spec.
func nodePoolFor(spec string) []byte {
	switch {
	case strings.HasPrefix(spec, "CapacityBuffer "):
		return smallNodePool
	case strings.HasPrefix(spec, "DefaultTopologySpreadConstraints "):
		return twoSizesNodePool
	case strings.HasPrefix(spec, "DRA KWOK Driver "):
		return kwokNodePool
	}
	return defaultNodePool
}

// atOnce is how many times faster than the real one the simulated Azure is that launches a
// machine before a suite can write anything about it, as KWOK does.
const atOnce = 1000

// speedFor is how many times faster than the real one the simulated Azure is for a spec. One
// spec writes a machine that does not exist into the status of a NodeClaim that it has just
// made; where the launch is still under way, that writes the real machine over it.
func (o Selection) speedFor(spec string) float64 {
	if strings.HasSuffix(spec, "launched by a NodeClaim but has no Instance mapping") {
		return atOnce
	}
	return o.Speed
}

// repairCondition is a condition for which nap replaces a node without tolerating it for
// a while, and which no kubelet resets.
const repairCondition = "kubernetes.azure.com/NodeHealthy=False/Conformance"

// rebootCondition is one for which nap reboots a node, after it has lasted ten minutes.
const rebootCondition = "KernelDeadlock=True/Conformance"

// RunCluster runs the chosen specs one by one, each as a process of its own, and adds
// each result to the record, which save writes. A spec that does not pass is a result and
// no error. After one, the next spec gets a new lab.
func (w *Workspace) RunCluster(
	ctx context.Context, suites []Suite, o Selection, record *Record, save func() error, tell func(string),
) error {
	focus, err := o.check()
	if err != nil {
		return err
	}
	begin := time.Now()
	l := lab{workspace: w, options: o}
	defer l.stop()
	for _, s := range suites {
		program, err := w.compile(ctx, s)
		if err != nil {
			return err
		}
		l.module, l.suite = w.link(s), s
		if l.program, err = w.build(ctx, s); err != nil {
			return err
		}
		compiled, err := w.list(ctx, s, program)
		if err != nil {
			return err
		}
		record.list(s.Name, compiled.specs)
		for _, spec := range compiled.specs {
			if _, known := record.Of(s.Name, o.Engine, spec); known && !o.Again || !focus.MatchString(spec) {
				continue
			}
			if o.Limit > 0 && time.Since(begin) > o.Limit {
				tell(fmt.Sprintf("the limit of %s has passed", o.Limit))
				return save()
			}
			if err := l.start(ctx, o.speedFor(spec)); err != nil {
				return err
			}
			result, err := w.runSpec(ctx, o, compiled, spec, l.kubeconfig())
			if err != nil {
				return err
			}
			record.Add(result)
			tell(fmt.Sprintf("%s %4d s  %s: %s  %s", result.State, result.Seconds, s.Name, spec, result.Message))
			if err := save(); err != nil {
				return err
			}
			if result.State == Failed {
				l.discard()
			}
		}
	}
	return save()
}

func (o Selection) check() (*regexp.Regexp, error) {
	if engines := []string{EngineNap, EngineKarpenter}; !slices.Contains(engines, o.Engine) {
		return nil, fmt.Errorf("-engine %q: allowed are %s", o.Engine, strings.Join(engines, " and "))
	}
	focus, err := regexp.Compile(o.Focus)
	if err != nil {
		return nil, fmt.Errorf("-focus %q: must be a regular expression: %w", o.Focus, err)
	}
	return focus, nil
}

// compile makes the program of a suite, and returns its path.
func (w *Workspace) compile(ctx context.Context, s Suite) (string, error) {
	root, err := w.Open(ctx, s)
	if err != nil {
		return "", err
	}
	program := filepath.Join(w.Dir, s.Name+".test")
	changes, err := w.changes(s)
	if err != nil {
		return "", err
	}
	command := slices.Concat([]string{"go", "test", "-c"}, changes, []string{"-o", program, "./" + s.Package})
	if err := run(ctx, root, nil, os.Stderr, command...); err != nil {
		return "", fmt.Errorf("compile suite %s: %w", s.Name, err)
	}
	return program, nil
}

// compiled is a suite that can be run.
type compiled struct {
	Suite
	// program is the path of its program.
	program string
	// description is the name that the focus of a spec begins with.
	description string
	// specs are the names of its specs, sorted.
	specs []string
}

// list asks the suite for its specs, which needs no cluster.
func (w *Workspace) list(ctx context.Context, s Suite, program string) (compiled, error) {
	report := filepath.Join(w.Dir, s.Name+".list.json")
	log, err := os.Create(filepath.Join(w.Dir, s.Name+".list.log"))
	if err != nil {
		return compiled{}, fmt.Errorf("list suite %s: %w", s.Name, err)
	}
	defer log.Close()
	if err := run(ctx, w.Dir, nil, log, program, "-ginkgo.dry-run", "-ginkgo.json-report="+report); err != nil {
		return compiled{}, fmt.Errorf("list suite %s: %w; see %s", s.Name, err, log.Name())
	}
	description, specs, err := ReadReport(report)
	if err != nil {
		return compiled{}, err
	}
	out := compiled{Suite: s, program: program, description: description}
	for _, spec := range specs {
		out.specs = append(out.specs, spec.Text)
	}
	slices.Sort(out.specs) // Ginkgo shuffles containers
	return out, nil
}

// runSpec runs one spec against the cluster of the kubeconfig. What it prints goes to a
// file below logs in the workspace.
func (w *Workspace) runSpec(ctx context.Context, o Selection, s compiled, spec, kubeconfig string) (Result, error) {
	files := map[string][]byte{"nodeclass.yaml": defaultNodeClass, "nodepool.yaml": nodePoolFor(spec)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.Dir, name), text, 0o644); err != nil {
			return Result{}, fmt.Errorf("write the default objects: %w", err)
		}
	}
	logs := filepath.Join(w.Dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return Result{}, fmt.Errorf("make the folder of logs: %w", err)
	}
	name := strings.Join([]string{s.Name, o.Engine, notInFileNames.ReplaceAllString(spec, "-")}, "_")
	log, err := os.Create(filepath.Join(logs, name[:min(len(name), 200)]+".log"))
	if err != nil {
		return Result{}, fmt.Errorf("open the log of a spec: %w", err)
	}
	defer log.Close()
	report, measured := filepath.Join(w.Dir, s.Name+"."+o.Engine+".json"), filepath.Join(w.Dir, "measured")
	if err := errors.Join(os.RemoveAll(report), os.RemoveAll(measured), os.MkdirAll(measured, 0o755)); err != nil {
		return Result{}, fmt.Errorf("remove the last report: %w", err)
	}
	began := time.Now()
	folder := filepath.Join(w.link(s.Suite), s.Package)
	ran := run(ctx, folder, []string{"KUBECONFIG=" + kubeconfig, "OUTPUT_DIR=" + measured}, log, s.program,
		"-ginkgo.focus=^"+regexp.QuoteMeta(s.description+" "+spec)+"$", "-ginkgo.json-report="+report, "-ginkgo.vv",
		"-ginkgo.timeout="+o.SpecTimeout.String(), "-ginkgo.grace-period=30s", "-test.timeout=0",
		"-default-nodeclass="+filepath.Join(w.Dir, "nodeclass.yaml"), "-default-nodepool="+filepath.Join(w.Dir, "nodepool.yaml"),
		"-repair-condition="+repairCondition, "-reboot-condition="+rebootCondition)
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("the run was ended: %w", context.Cause(ctx))
	}
	out := Result{Suite: s.Name, Engine: o.Engine, Spec: spec, State: Failed, Seconds: int(time.Since(began).Seconds())}
	if out.Phases, err = readPhases(measured); err != nil {
		return Result{}, err
	}
	_, specs, err := ReadReport(report)
	if err != nil {
		out.Message = shorten(errors.Join(ran, err).Error())
		return out, nil
	}
	for _, done := range specs {
		if done.Text == spec {
			out.State, out.Message, out.Seconds = done.State, w.withoutFolder(done.Message), int(done.Took.Seconds())
			return out, nil
		}
	}
	return Result{}, fmt.Errorf("suite %s has no spec %q in its report %s", s.Name, spec, report)
}

// withoutFolder leaves out of a message where the workspace is on this machine.
func (w *Workspace) withoutFolder(message string) string {
	return strings.ReplaceAll(message, w.Dir+"/", "")
}

var notInFileNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// list takes over the names of a suite's specs and forgets results of specs that it no
// longer has.
func (r *Record) list(suite string, specs []string) {
	r.Specs[suite] = specs
	r.Results = slices.DeleteFunc(r.Results, func(have Result) bool {
		return have.Suite == suite && !slices.Contains(specs, have.Spec)
	})
}
