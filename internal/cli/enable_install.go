package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// The exit codes of nap enable beside 0 and 1.
const (
	exitFirst    = 2 // something else has to be done first
	exitNotReady = 3 // nap was not ready in time
)

// enabler is "nap enable" where it installs nap.
type enabler struct {
	op *operator
	// doctor finds the cluster and reads what the checks look at.
	doctor doctorCommand
	flags  enableFlags
}

// enableFlags are the flags of nap enable that say what is installed.
type enableFlags struct {
	namespace, image string
	values           []string
	pools            string
	subnet, machines string
	remove           bool // --undo
	timeout          time.Duration
}

// The names of the releases, and what they are in without --namespace.
const (
	releaseName        = "nap"
	releaseDefinitions = "nap-crd"
	releaseNamespace   = "nap-system"
)

// noPool is --machines-pool of those who want none.
const noPool = "none"

func newEnabler(o *operator) *enabler {
	return &enabler{op: o, doctor: doctorCommand{azureCluster: newAzureCluster(o.now), streams: o.streams, cluster: readCluster}}
}

func (e *enabler) add(flags *pflag.FlagSet) {
	e.doctor.azureCluster.add(flags)
	flags.StringVar(&e.flags.image, "image", "", "nap's image, as make push prints it (default: $NAP_IMAGE, or that of the installed release)")
	flags.StringVar(&e.flags.pools, "default-node-pools", string(v1alpha1.DefaultNodePoolsAuto),
		"whether nap makes the NodePools default and system-surge in a cluster without NodePools: Auto or None")
	flags.StringVar(&e.flags.subnet, "subnet", "", "resource id of the subnet of nap's machines (default: the cluster's)")
	flags.StringVar(&e.flags.machines, "machines-pool", setup.DefaultMachinesPool,
		"agent pool of mode Machines, which is made where it is missing; none for plain virtual machines;\n"+
			"without the flag, the release stays as it is")
	flags.StringArrayVar(&e.flags.values, "values", nil, "file with values of the chart nap (repeatable)")
	flags.StringVar(&e.flags.namespace, "namespace", releaseNamespace, "the namespace of nap")
	flags.BoolVar(&e.flags.remove, "undo", false, "remove what nap enable has made")
	flags.DurationVar(&e.flags.timeout, "timeout", 10*time.Minute, "how long to wait until nap is ready")
}

// wanted reports whether the flags say which cluster to install nap in.
func (e *enabler) wanted(flags *pflag.FlagSet) bool {
	azure := []string{
		"resource-group", "name", "subscription", "image", "subnet", "machines-pool", "default-node-pools", "values", "undo",
	}
	return slices.ContainsFunc(azure, flags.Changed)
}

// check refuses flags that cannot be.
func (e *enableFlags) check() error {
	if err := oneOf("default-node-pools", e.pools, string(v1alpha1.DefaultNodePoolsAuto), string(v1alpha1.DefaultNodePoolsNone)); err != nil {
		return err
	}
	if !poolNames.MatchString(e.machines) {
		return fmt.Errorf("--machines-pool: got %q, must be %s or match %s", e.machines, noPool, poolNames)
	}
	if e.subnet != "" {
		if _, err := network.ParseSubnet(e.subnet); err != nil {
			return fmt.Errorf("--subnet: %w", err)
		}
	}
	return nil
}

// poolNames are the names that AKS takes for agent pools.
var poolNames = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)

func (e *enabler) run(ctx context.Context, flags *pflag.FlagSet) error {
	if err := e.flags.check(); err != nil {
		return err
	}
	cfg, err := e.doctor.config()
	if err != nil {
		return err
	}
	cluster, err := e.op.cluster.Config(ctx)
	if err != nil {
		return err
	}
	cluster.QPS, cluster.Burst = 50, 100 // each object of the releases is looked at, and applied
	access, err := e.doctor.connect(&cfg)
	if err != nil {
		return err
	}
	facts, err := e.doctor.read(ctx, &cfg, cluster)
	if err != nil {
		return err
	}
	i := &installation{op: e.op, flags: &e.flags, lookupEnv: e.doctor.lookupEnv, rest: cluster, facts: facts, changed: flags.Changed}
	if err := i.prepare(ctx); err != nil {
		return err
	}
	target := setup.Target{Cluster: *facts.Cluster, Namespace: e.flags.namespace, ServiceAccount: i.account, SubnetID: e.flags.subnet,
		MachinesPool: i.pool}
	if i.plan, err = setup.New(target, access.credential, access.options); err != nil {
		return err
	}
	if e.flags.remove {
		if err := i.undo(ctx); err != nil {
			return err
		}
		return e.op.tellPrograms()
	}
	if err := i.checkCluster(ctx); err != nil {
		return err
	}
	if err := i.checkReleases(ctx); err != nil {
		return err
	}
	if err := i.makeAzure(ctx); err != nil {
		return err
	}
	if err := i.installReleases(ctx); err != nil {
		return err
	}
	if e.op.dryRun {
		return e.op.tellPrograms()
	}
	if err := i.await(ctx); err != nil {
		return err
	}
	return i.next(ctx)
}

// installation is one run of it on one cluster.
type installation struct {
	op        *operator
	flags     *enableFlags
	lookupEnv func(string) (string, bool)

	rest    *rest.Config
	facts   *prerequisites.Facts
	changed func(flag string) bool
	plan    *setup.Plan
	// values are what the chart nap gets, but for the identity, which is made first;
	// account and deployment are what the chart calls nap's.
	values              map[string]any
	account, deployment string
	// replicas are those of the chart's Deployment.
	replicas int32
	// memory is the limit that the release gets since the cluster is large; empty for the
	// chart's own.
	memory string
	// shadow says that the release has been a shadow so far.
	shadow bool
	// pool is the agent pool of nap's machines, empty where nap buys plain virtual machines: that is
	// wanted, or AKS makes none. modeGiven says that the flag or the values have decided it.
	pool      string
	modeGiven bool
}

// first is an error about something that has to be done before.
func first(format string, args ...any) error {
	return &command.ExitError{Code: exitFirst, Err: fmt.Errorf(format, args...)}
}

// checkCluster refuses a cluster that lacks something which nap enable does not make.
func (i *installation) checkCluster(ctx context.Context) error {
	c := i.facts.Cluster
	if c.OIDCIssuer == "" || !c.WorkloadIdentity {
		return first("cluster %s has no OIDC issuer or no workload identity, by which nap signs in to Azure; nothing was made. Run:\n"+
			"  az aks update --resource-group %s --name %s --enable-oidc-issuer --enable-workload-identity", c.Name, c.ResourceGroup, c.Name)
	}
	if err := i.sameCluster(ctx, c); err != nil {
		return err
	}
	results := prerequisites.BeforeInstall(prerequisites.Check(i.facts))
	report := newDoctorReport(i.facts, results)
	failed := report.Counts[string(prerequisites.Failed)]
	if i.op.forPrograms() {
		i.op.would.Checks = report
	} else if failed > 0 || i.op.dryRun {
		if err := report.write(i.op.streams.Out, false); err != nil {
			return err
		}
	}
	if failed > 0 && !i.op.dryRun {
		return first("%d of %d checks failed, see above; nothing was made. Mend them, and run this again", failed, len(results))
	}
	if !i.op.dryRun {
		i.op.say("Checked: AKS cluster %s of resource group %s, %d checks%s", c.Name, c.ResourceGroup, len(results), report.summary())
	}
	return nil
}

// sameCluster refuses a kubeconfig of another cluster: that would be changed, and Azure
// would not take its tokens. The issuer of the tokens tells clusters apart.
func (i *installation) sameCluster(ctx context.Context, c *managedcluster.Facts) error {
	issuer, err := issuerOf(ctx, i.rest)
	if err != nil {
		return fmt.Errorf("ask the API server at %s which issuer its tokens have: %w", i.rest.Host, err)
	}
	if strings.TrimSuffix(issuer, "/") != strings.TrimSuffix(c.OIDCIssuer, "/") {
		return first("the kubeconfig is of another cluster than %s: the API server at %s issues tokens of %s, "+
			"and that cluster's are of %s; nothing was made. Run:\n  az aks get-credentials --resource-group %s --name %s",
			c.Name, i.rest.Host, issuer, c.OIDCIssuer, c.ResourceGroup, c.Name)
	}
	return nil
}

// readValues reads the files of --values, the last one counts.
func (e *enableFlags) readValues() (map[string]any, error) {
	all := map[string]any{}
	for _, file := range e.values {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--values %s: there is no such file", file)
		}
		if err != nil {
			return nil, fmt.Errorf("--values %s: %w", file, err)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(text, &values); err != nil {
			return nil, fmt.Errorf("--values %s: %w: give YAML as helm takes it", file, err)
		}
		all = charts.Overlay(values, all)
	}
	return all, nil
}

// imageValues are the values of an image by its reference.
func imageValues(reference string) (map[string]any, error) {
	name, digest, _ := strings.Cut(reference, "@")
	repository, tag := name, ""
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		repository, tag = name[:at], name[at+1:]
	}
	if repository == "" || tag == "" && digest == "" {
		return nil, fmt.Errorf("--image: got %q, must be REPOSITORY:TAG or REPOSITORY@DIGEST, as make push prints it", reference)
	}
	return map[string]any{"repository": repository, "tag": tag, "digest": digest}, nil
}
