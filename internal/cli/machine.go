package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/bootstrap/inputs"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// newMachine is the group of commands about single machines.
func newMachine(s command.Streams) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "machine",
		Short: "Show what machines are told",
	})
	cmd.AddCommand(newMachineBootdata(s))
	return cmd
}

// bootdataCommand is "nap machine bootdata" before it runs.
type bootdataCommand struct {
	streams command.Streams
	files   []string
	pool    string
	size    string
	cluster clusterFlags
	output  string
}

func newMachineBootdata(s command.Streams) *cobra.Command {
	c := &bootdataCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "bootdata",
		Short: "Show what a plain machine of a NodePool is told so that it becomes a node",
		Long: `Show the configuration (AKSNodeConfig) that nap gives to the machine that it
would buy for a NodePool when it makes plain virtual machines.

The cluster is the one that az aks show -o json describes (--cluster), or the
one of a kubeconfig's context. What neither says is a marked placeholder. The
NodePool and its AKSNodeClass are those of the files, or without files those of
the cluster that --context or --kubeconfig chooses. The token is masked, and so
are users and passwords of proxies. -o json prints the bare
configuration and nothing else.`,
		Example: `  az aks show --resource-group prod --name prod -o json > cluster.json
  nap machine bootdata -f nodepool.yaml --cluster cluster.json
  nap machine bootdata -f nodepool.yaml --cluster cluster.json --size Standard_D8s_v5 -o json
  nap machine bootdata -f nodepool.yaml --context prod
  nap machine bootdata --nodepool general --context prod`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&c.files, "filename", "f", nil, "NodePool and AKSNodeClass: a file, a folder, or - for standard input (repeatable)")
	flags.StringVar(&c.pool, "nodepool", "", "the NodePool, where there are several")
	flags.StringVar(&c.size, "size", "", "the VM size (default: the cheapest that the NodePool allows)")
	c.cluster.add(flags)
	addOutput(cmd, &c.output, textForms())
	return cmd
}

func (c *bootdataCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, textForms()); err != nil {
		return err
	}
	offered, err := c.read(ctx)
	if err != nil {
		return err
	}
	pool, class, err := offered.choose(c.pool, &c.streams)
	if err != nil {
		return err
	}
	described, err := c.cluster.read(ctx)
	if err != nil {
		return err
	}
	if pause := described.config.Facts.Pause(); pause != nil {
		sayNote(c.streams.Err, "%v", pause)
	}
	spec, note, err := c.machine(ctx, &described.config, pool, class)
	if err != nil {
		return err
	}
	built, err := inputs.Config(&described.config, spec, described.securityGroup)
	if err != nil {
		return fmt.Errorf("such a machine would not become a node:\n%w", err)
	}
	// Custom data that are too long are no less worth seeing.
	if _, err := built.CustomData(); err != nil {
		fmt.Fprintf(c.streams.Err, "warning: %v\n", err)
	}
	maskSecrets(built)
	if isDocument(c.output) {
		return writeDocument(c.streams.Out, c.output, built)
	}
	return c.text(spec, note, described, built)
}

// text is the form for people: which machine it is, what in it is a placeholder, and
// the configuration.
func (c *bootdataCommand) text(spec launch.NodeSpec, note string, described *describedCluster, built *bootstrap.Config) error {
	where := "in no zone"
	if spec.Zone != "" {
		where = "in zone " + spec.Zone
	}
	lines := []string{
		fmt.Sprintf("NodePool %s, AKSNodeClass %s: %s, %s, %s", spec.Pool, spec.Class.Name, spec.SKU.Name, spec.CapacityType, where),
		"image " + spec.Image.Definition + "; " + note,
	}
	for _, field := range slices.Sorted(maps.Keys(described.placeholders)) {
		lines = append(lines, fmt.Sprintf("placeholder: %s: %s", field, described.placeholders[field]))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(c.streams.Out, "# %s\n", line); err != nil {
			return err
		}
	}
	return writeDocument(c.streams.Out, "yaml", built)
}

// bootdataClaim stands for the NodeClaim, whose name is made up when it is bought.
const bootdataClaim = "-00000"

// machine chooses the machine that would be bought: the cheapest that is allowed, or
// the size that is asked for. The note says what the choice is worth.
func (c *bootdataCommand) machine(ctx context.Context, cluster *config.Config, pool *v1.NodePool, class *nodeclass.NodeClass) (
	launch.NodeSpec, string, error,
) {
	var err error
	class.KubernetesVersion = cluster.Facts.State.KubernetesVersion
	if class.Images, err = image.Definitions(class, class.KubernetesVersion); err != nil {
		return launch.NodeSpec{}, "", err
	}
	if !bootstrap.Understands(class.ImageVersion) {
		return launch.NodeSpec{}, "", fmt.Errorf("AKSNodeClass %s: spec.imageVersion: got %q, must be at least %s: older images do not "+
			"understand what nap tells plain machines", class.Name, class.ImageVersion, bootstrap.OldestImage)
	}
	built, note, err := c.sizes(cluster, class)
	if err != nil {
		return launch.NodeSpec{}, "", err
	}
	claim := nodeclaims.Whole(pool, pool.Name+bootdataClaim)
	if c.size != "" {
		claim.Spec.Requirements = append(claim.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{c.size},
		})
	}
	order, err := cloudprovider.OrderOf(claim, class, built)
	if err != nil {
		return launch.NodeSpec{}, "", fmt.Errorf("NodePool %s: %w", pool.Name, err)
	}
	candidates := launch.Rank(built, order.Requirements, order.Requests, order.Claim)
	if len(candidates) == 0 {
		why := launch.WhyNone(built, order.Requirements, order.Requests)
		if c.size == "" {
			why += leftOut(built.Excluded)
		}
		return launch.NodeSpec{}, "", fmt.Errorf("NodePool %s: %s", pool.Name, why)
	}
	spec, err := azure.Specify(ctx, cluster, order, candidates[0])
	return spec, note, err
}

// leftOut says how many sizes the node class leaves out, by reason.
func leftOut(excluded []instancetype.Exclusion) string {
	counts := map[string]int{}
	for _, e := range excluded {
		counts[e.Reason]++
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var out strings.Builder
	for _, reason := range reasons {
		fmt.Fprintf(&out, "; %d sizes are left out: %s", counts[reason], reason)
	}
	return out.String()
}

// sizes lays out the built-in table for the cluster's region and the class.
func (c *bootdataCommand) sizes(cluster *config.Config, class *nodeclass.NodeClass) (*instancetype.Built, string, error) {
	prices, err := offline.OpenPrices(cluster.Location, "", "")
	if err != nil {
		return nil, "", err
	}
	note := "the cheapest by " + prices.Note
	if c.size != "" {
		note = "the size that was asked for"
		i := slices.IndexFunc(prices.Table.Sizes(), func(s skutable.Size) bool { return strings.EqualFold(s.Name, c.size) })
		if i < 0 {
			return nil, "", fmt.Errorf("--size: got %q, which the built-in table does not have; nap catalog -o name lists what it has", c.size)
		}
		c.size = prices.Table.Sizes()[i].Name
	}
	granted := offline.Granted()
	sizes := instancetype.New(azure.Region(cluster),
		instancetype.Market{Prices: prices.Book, Unavailable: granted.Unavailable, Quota: granted.Quota, Disks: prices.Disks})
	sizes.SetSKUs(prices.SKUs())
	built := sizes.For(class)
	for _, left := range built.Excluded {
		if left.Size == c.size {
			return nil, "", fmt.Errorf("--size: %s is left out: %s", c.size, left.Reason)
		}
	}
	return built, note, nil
}

// maskSecrets masks the bootstrap token, and users and passwords in the addresses of proxies.
func maskSecrets(c *bootstrap.Config) {
	if !c.Bootstrapping.TLSBootstrappingToken.IsZero() {
		c.Bootstrapping.TLSBootstrappingToken = jointoken.New(jointoken.Mask)
	}
	if p := c.HTTPProxy; p != nil {
		p.HTTPProxy, p.HTTPSProxy = mask.Address(p.HTTPProxy), mask.Address(p.HTTPSProxy)
	}
}
