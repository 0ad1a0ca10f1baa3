package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
)

// imagesCommand is "nap images" before it runs.
type imagesCommand struct {
	azureCluster
	streams command.Streams
	family  string
	output  string
	// noHeaders prints the versions alone.
	noHeaders bool
}

// imagesReport is what nap images tells, and its form as JSON. Its fields are a promise:
// docs/plan-json.md documents them.
type imagesReport struct {
	Cluster           string          `json:"cluster"`
	Region            string          `json:"region"`
	KubernetesVersion string          `json:"kubernetesVersion"`
	ImageFamily       string          `json:"imageFamily"`
	Release           string          `json:"release"`
	Versions          []imagesVersion `json:"versions"`
}

// imagesVersion is one version. Dates are days in UTC, empty where Azure does not say.
// Supported is false for one that is known to be too old, or at its end.
type imagesVersion struct {
	Version   string   `json:"version"`
	Published string   `json:"published,omitempty"`
	AgeDays   int      `json:"ageDays"`
	Ends      string   `json:"ends,omitempty"`
	Newest    bool     `json:"newest"`
	Supported bool     `json:"supported"`
	Images    []string `json:"images"`
}

func newImages(s command.Streams) *cobra.Command {
	c := &imagesCommand{azureCluster: newAzureCluster(time.Now), streams: s}
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the node image versions that a class can be pinned to",
		Long: `List the versions of node images that AKS has published in the cluster's region
for its Kubernetes version, with their age and end. Classes without imageVersion
get the newest one; spec.imageVersion of an AKSNodeClass pins another. AKS
supports an image for 90 days, and a gallery removes it after its end.

Azure is asked as whoever you are signed in, by az login or the variables of a
service principal.`,
		Example: `  nap images --resource-group rg --name cluster
  nap images --resource-group rg --name cluster --image-family AzureLinux -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.add(cmd)
	return cmd
}

func (c *imagesCommand) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	c.azureCluster.add(flags)
	flags.StringVar(&c.family, "image-family", "Ubuntu", "spec.imageFamily of the class: Ubuntu, Ubuntu2204, Ubuntu2404 or AzureLinux")
	completeWords(cmd, "image-family", "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux")
	addOutput(cmd, &c.output, documentForms())
	flags.BoolVar(&c.noHeaders, "no-headers", false, "print the versions alone, without what stands above and below them")
}

func (c *imagesCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if err := oneOf("image-family", c.family, "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux"); err != nil {
		return err
	}
	report, err := c.read(ctx)
	if err != nil {
		return inOneLine(err)
	}
	if isDocument(c.output) {
		return writeDocument(c.streams.Out, c.output, report)
	}
	return c.write(report)
}

// read asks Azure for the cluster and for the versions that there are for it.
func (c *imagesCommand) read(ctx context.Context) (*imagesReport, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	access, err := c.connect(&cfg)
	if err != nil {
		return nil, err
	}
	t := &c.target
	clusters, errClusters := armcontainerservice.NewManagedClustersClient(t.Subscription, access.credential, access.options)
	galleries, errGalleries := armcompute.NewCommunityGalleryImageVersionsClient(t.Subscription, access.credential, access.options)
	if err := errors.Join(errClusters, errGalleries); err != nil {
		return nil, err
	}
	cluster, err := managedcluster.Read(ctx, clusters, t.ResourceGroup, t.Name)
	if err != nil {
		return nil, err
	}
	class := offline.DefaultNodeClass("default")
	class.ImageFamily = c.family
	kubernetes := cluster.State.KubernetesVersion
	release, versions, err := image.NewResolver(galleries, cluster.Location, 0, c.now).Versions(ctx, class, kubernetes)
	if err != nil {
		return nil, err
	}
	out := &imagesReport{
		Cluster: t.Name, Region: cluster.Location, KubernetesVersion: kubernetes, ImageFamily: c.family, Release: release.Name,
	}
	for i := range versions {
		out.Versions = append(out.Versions, imagesVersionOf(&versions[i], c.now()))
	}
	return out, nil
}

func imagesVersionOf(p *image.Published, now time.Time) imagesVersion {
	out := imagesVersion{Version: p.Version, Newest: p.Newest, Supported: true, Images: p.Definitions}
	if !p.At.IsZero() {
		age := now.Sub(p.At)
		out.Published, out.AgeDays = p.At.UTC().Format(time.DateOnly), max(0, int(age.Hours()/24))
		out.Supported = age <= image.SupportedFor
	}
	if !p.Ends.IsZero() {
		out.Ends = p.Ends.UTC().Format(time.DateOnly)
		out.Supported = out.Supported && now.Before(p.Ends)
	}
	return out
}

func (c *imagesCommand) write(r *imagesReport) error {
	w := c.streams.Out
	if !c.noHeaders {
		fmt.Fprintf(w, "Node images of %s (%s) in %s for Kubernetes %s\n\n", r.ImageFamily, r.Release, r.Region, r.KubernetesVersion)
	}
	line := func(cells ...any) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-13s  %-10s  %5s  %-10s  %s", cells...), " "))
	}
	if !c.noHeaders {
		line("VERSION", "PUBLISHED", "AGE", "ENDS", "")
	}
	for _, v := range r.Versions {
		var notes []string
		if v.Newest {
			notes = append(notes, "newest")
		}
		if !v.Supported {
			notes = append(notes, "out of support")
		}
		age := "-"
		if v.Published != "" {
			age = fmt.Sprintf("%dd", v.AgeDays)
		}
		line(v.Version, cmp.Or(v.Published, "-"), age, cmp.Or(v.Ends, "-"), strings.Join(notes, ", "))
	}
	if c.noHeaders {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nTo pin a class:\n  kubectl patch aksnodeclass NAME --type merge \\\n"+
		"    -p '{\"spec\":{\"imageVersion\":\"%s\"}}'\n",
		r.Versions[0].Version)
	return err
}
