package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/price/pricesheet"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
)

// importCommand is "nap prices import" before it runs.
type importCommand struct {
	priceList
	sheets       []string
	reservations string
}

func newPricesImport(s command.Streams) *cobra.Command {
	c := &importCommand{priceList: priceList{streams: s}}
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a file for --prices-file of a subscription's price sheet and reservations",
		Long: `Read the price sheet of a subscription or billing account and the list of its
reservations, and print what they say of the VM sizes of a region as a file for
--prices-file.

A price sheet is CSV as the portal gives it (Cost Management + Billing, Usage +
charges, Azure price sheet), of an Enterprise Agreement or a Microsoft Customer
Agreement, or JSON as az prints it. Its lines have meters, and Azure's public list
says which meter bills which size: it is read, too, and needs no account. What the
sheet does not name stays at the retail price, savings plans are stated by hand
(docs/prices.md).`,
		Example: `  az consumption pricesheet show -o json > sheet.json
  az reservations list -o json > reservations.json
  nap prices import --region eastus --price-sheet sheet.json --reservations reservations.json > prices.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.priceList.flags(cmd)
	cmd.Flags().StringArrayVar(&c.sheets, "price-sheet", nil,
		"file with a price sheet, CSV or JSON, - for standard input; again for further pages")
	cmd.Flags().StringVar(&c.reservations, "reservations", "",
		"file with reservations, as az reservations list -o json prints them, - for standard input")
	return cmd
}

func (c *importCommand) run(ctx context.Context) error {
	region, err := c.check()
	if err != nil {
		return err
	}
	if len(c.sheets) == 0 && c.reservations == "" {
		return fmt.Errorf("nothing to import: give --price-sheet FILE, --reservations FILE, or both")
	}
	now := time.Now()
	terms := &price.Terms{}
	var told []string
	if c.reservations != "" {
		r, err := readFile(c, "--reservations", c.reservations, func(r io.Reader) (*pricesheet.Reservations, error) {
			return pricesheet.ReadReservations(r, region, now)
		})
		if err != nil {
			return err
		}
		terms.Reservations = r.Machines
		told = append(r.Notes, fmt.Sprintf("%d reserved machines of %d sizes in %s", machines(r.Machines), len(r.Machines), region))
	}
	if len(c.sheets) > 0 {
		said, err := c.prices(ctx, region, terms, now)
		if err != nil {
			return err
		}
		told = append(told, said...)
	}
	text, err := yaml.Marshal(terms)
	if err != nil {
		return err
	}
	for _, line := range told {
		fmt.Fprintln(c.streams.Err, line)
	}
	_, err = fmt.Fprintf(c.streams.Out, "# What the subscription pays in %s, imported at %s.\n%s",
		region, now.UTC().Format(time.RFC3339), text)
	return err
}

// prices adds to terms the prices of the sheets, and says what has come of them.
func (c *importCommand) prices(ctx context.Context, region string, terms *price.Terms, now time.Time) ([]string, error) {
	sheet := pricesheet.New()
	for _, name := range c.sheets {
		_, err := readFile(c, "--price-sheet", name, func(r io.Reader) (struct{}, error) { return struct{}{}, sheet.Read(r, now) })
		if err != nil {
			return nil, err
		}
	}
	meters, err := c.client().Meters(ctx, region)
	if err != nil {
		return nil, err
	}
	missing := 0
	for _, m := range meters {
		dollars, ok := sheet.Hourly(m.ID)
		if !ok {
			missing++
			continue
		}
		if n := len(terms.Prices); n == 0 || terms.Prices[n-1].Size != m.Size { // meters come by size
			terms.Prices = append(terms.Prices, price.Negotiated{Size: m.Size})
		}
		into := &terms.Prices[len(terms.Prices)-1]
		if m.CapacityType == model.Spot {
			into.Spot = &dollars
		} else {
			into.OnDemand = &dollars
		}
	}
	from := strings.Join(c.sheets, ", ")
	if len(terms.Prices) == 0 {
		return nil, fmt.Errorf("--price-sheet %s: none of the %d meters of virtual machines in %s has a price by the hour in it; "+
			"is it the sheet of this billing account, with all of its services?", from, len(meters), region)
	}
	told := []string{fmt.Sprintf("%d of %d prices of virtual machines in %s are in %s; %d stay at the retail price",
		len(meters)-missing, len(meters), region, from, missing)}
	if why := sheet.WhyUnused(); why != "" {
		told = append(told, "lines that count for nothing: "+why)
	}
	if n := sheet.Ended(); n > 0 {
		told = append(told, fmt.Sprintf("%d prices of the sheet ended before today and are used all the same: import the sheet of this month", n))
	}
	if sheet.More {
		told = append(told, "the sheet names a next page: give every page with --price-sheet")
	}
	return told, nil
}

func machines(reserved []price.Reservation) int {
	n := 0
	for _, r := range reserved {
		n += r.Count
	}
	return n
}

// readFile reads what a flag names, - being standard input. Its errors name flag and file.
func readFile[T any](c *importCommand, flag, name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	in := c.streams.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return none, fmt.Errorf("%s: %w", flag, err)
		}
		defer file.Close()
		in = file
	}
	out, err := read(in)
	if err != nil {
		return none, fmt.Errorf("%s %s: %w", flag, name, err)
	}
	return out, nil
}
