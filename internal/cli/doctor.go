package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/kube/clusterfacts"
	"github.com/nodeautoprovision/nap/internal/poollint"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
	"github.com/nodeautoprovision/nap/internal/prerequisites/azurefacts"
)

// The exit codes of nap doctor beside 0 and 1.
const (
	exitFailed  = 2 // a prerequisite is not met
	exitWarning = 3 // one is, and not for ever or not for all
	exitUnknown = 4 // nothing is wrong as far as could be read
)

// doctorCommand is "nap doctor" before it runs.
type doctorCommand struct {
	azureCluster
	streams command.Streams
	kube    command.Cluster
	output  string
	all     bool
	bundle  string

	// cluster reads what the API server tells.
	cluster func(ctx context.Context, access *rest.Config, f *prerequisites.Facts) error
}

func newDoctor(s command.Streams) *cobra.Command {
	c := &doctorCommand{azureCluster: newAzureCluster(time.Now), streams: s, cluster: readCluster}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a cluster has what nap needs",
		Long: `Read an AKS cluster, its network, its subscription and what is in it, and check
each prerequisite of docs/prerequisites.md. Every finding says what was read,
why it matters, and the command that mends it. Nothing is changed.

Azure is asked as whoever you are signed in, by az login or the variables of a
service principal. Rights are checked of --principal-id, the object id of nap's
identity; without it, of you. What you may not read is unknown, and said so.

--bundle FILE writes an archive for a support request: the report, what was
read, nap's objects, events and logs. Tokens, passwords, keys and certificates
in it are masked.

Exit codes: 0 all is well; 1 the checks could not be run; 2 a prerequisite is
not met; 3 none failed, and there are warnings; 4 nothing was found, and not all
could be read.`,
		Example: `  nap doctor --resource-group rg --name cluster
  nap doctor --resource-group rg --name cluster -o json | jq '.results[] | select(.verdict != "ok")'
  nap doctor --resource-group rg --name cluster --bundle support.tar.gz`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.add(cmd)
	return cmd
}

func (c *doctorCommand) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	c.azureCluster.add(flags)
	flags.StringVar(&c.target.Principal, "principal-id", "", "the object id of nap's identity, whose rights are checked (default: yours)")
	c.kube.Add(flags)
	addOutput(cmd, &c.output, textForms())
	flags.BoolVar(&c.all, "all", false, "show also what is well")
	flags.StringVar(&c.bundle, "bundle", "", "write a support archive to this file (.tar.gz), with secrets masked")
}

func (c *doctorCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, textForms()); err != nil {
		return err
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cluster, err := c.kube.Config(ctx)
	if err != nil {
		return err
	}
	facts, err := c.read(ctx, &cfg, cluster)
	if err != nil {
		return err
	}
	report := newDoctorReport(facts, prerequisites.Check(facts))
	if c.bundle != "" {
		if err := writeBundle(ctx, c.bundle, cluster, facts, report); err != nil {
			return err
		}
		fmt.Fprintf(c.streams.Err, "wrote %s; secrets in it are masked, look before you send it\n", c.bundle)
	}
	if isDocument(c.output) {
		err = writeDocument(c.streams.Out, c.output, report)
	} else {
		err = report.write(c.streams.Out, c.all)
	}
	if err != nil {
		return err
	}
	codes := map[prerequisites.Verdict]int{
		prerequisites.Failed: exitFailed, prerequisites.Warning: exitWarning, prerequisites.Unknown: exitUnknown,
	}
	if code := codes[prerequisites.Worst(report.Results)]; code != 0 {
		return &command.ExitError{Code: code}
	}
	return nil
}

// read reads all facts.
func (c *doctorCommand) read(ctx context.Context, cfg *config.Config, cluster *rest.Config) (*prerequisites.Facts, error) {
	access, err := c.connect(cfg)
	if err != nil {
		return nil, err
	}
	c.target.Class = offline.DefaultNodeClass("default")
	fromAzure, err := azurefacts.New(c.target, access.credential, access.options, access.http, c.now)
	if err != nil {
		return nil, err
	}
	facts, err := fromAzure.Read(ctx)
	if err != nil {
		return nil, inOneLine(err)
	}
	return facts, c.cluster(ctx, cluster, facts)
}

// readCluster reads what the API server tells.
func readCluster(ctx context.Context, access *rest.Config, f *prerequisites.Facts) error {
	judge, err := judgeOf(f.Cluster.Location)
	if err != nil {
		return err
	}
	reader, err := clusterfacts.New(access, judge)
	if err != nil {
		return err
	}
	if reader.Rights, err = rightsIn(access); err != nil {
		return err
	}
	reader.Read(ctx, f)
	return ctx.Err()
}

// judgeOf judges NodePools by the built-in table of a region.
func judgeOf(region string) (clusterfacts.Judge, error) {
	source, err := catalogFlags{region: region}.open(map[string]*nodeclass.NodeClass{}, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, p *karpv1.NodePool, limits map[string]int64) (string, int64, []string) {
		pool, catalog := kube.Pool(p), source.ForClass("")
		vcpus, of := poollint.Room(pool, catalog, limits)
		lacking := poollint.Lacking{Excluded: source.Excluded, Unknown: source.Unknown}
		return poollint.Nothing(pool, catalog, poollint.Advice(catalog, lacking)), vcpus, of
	}, nil
}
