package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// retailPrices is Azure's public list of prices, which asks for no account.
const retailPrices = "https://prices.azure.com/api/retail/prices"

// fetchTimeout bounds one request for a page of the list.
const fetchTimeout = time.Minute

// priceList is what the commands share that read Azure's public list.
type priceList struct {
	streams  command.Streams
	region   string
	endpoint string
	// http reaches the list.
	http price.Doer
}

func newPrices(s command.Streams) *cobra.Command {
	prices := command.Group(&cobra.Command{
		Use:   "prices",
		Short: "Make files for --prices-file: from Azure's public list, from a price sheet",
	})
	c := &priceList{streams: s, http: &http.Client{Timeout: fetchTimeout}}
	fetch := &cobra.Command{
		Use:   "fetch",
		Short: "Print the prices of a region, for --prices-file",
		Long: `Read the pay-as-you-go and spot prices of all VM sizes in a region from Azure's
public list, which needs no account, and print them as a file for --prices-file.
Add to the file what you have agreed with Azure: discounts, reservations,
savings plans, costs per node (docs/prices.md).`,
		Example: `  nap prices fetch --region swedencentral > prices.yaml
  nap plan -f manifests/ --region swedencentral --prices-file prices.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.fetch(cmd.Context()) },
	}
	c.flags(fetch)
	prices.AddCommand(fetch, newPricesImport(s))
	return prices
}

func (c *priceList) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.region, "region", "", "Azure region whose prices are read (required)")
	completeRegion(cmd)
	cmd.Flags().StringVar(&c.endpoint, "endpoint", retailPrices, "address of the list")
}

// check returns the region as Azure writes it, or says which flag is wrong.
func (c *priceList) check() (string, error) {
	if c.region == "" {
		return "", fmt.Errorf("--region: is missing, give the region whose prices are wanted, such as %s", offline.DefaultRegion)
	}
	region, err := price.RegionName(c.region)
	if err != nil {
		return "", fmt.Errorf("--region: %w", err)
	}
	if price.InChina(region) && c.endpoint == retailPrices {
		return "", fmt.Errorf("--region: got %q, of which Azure's public list has no prices: write what you pay into a file by hand "+
			"(docs/prices.md)", region)
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--endpoint: got %q, must be a URL that begins with https:// or http://", c.endpoint)
	}
	return region, nil
}

// client reads the public list.
func (c *priceList) client() *price.Client {
	return price.NewClient(c.endpoint, c.http, time.Now)
}

func (c *priceList) fetch(ctx context.Context) error {
	region, err := c.check()
	if err != nil {
		return err
	}
	table, err := c.client().Fetch(ctx, region)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(termsOf(table))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.streams.Out, "# Azure's retail prices of %s, read at %s.\n%s", region, time.Now().UTC().Format(time.RFC3339), text)
	return err
}

// termsOf writes a table of prices as a file of terms does, by size.
func termsOf(table price.Table) *price.Terms {
	sizes := map[string]bool{}
	for size := range table.OnDemand {
		sizes[size] = true
	}
	for size := range table.Spot {
		sizes[size] = true
	}
	terms := &price.Terms{}
	dollarsOf := func(prices map[string]model.Money, size string) *float64 {
		m, ok := prices[size]
		if !ok {
			return nil
		}
		value := m.Dollars()
		return &value
	}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		terms.Prices = append(terms.Prices, price.Negotiated{
			Size: size, OnDemand: dollarsOf(table.OnDemand, size), Spot: dollarsOf(table.Spot, size),
		})
	}
	return terms
}
