package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/price/billing"
	"github.com/nodeautoprovision/nap/internal/azure/price/pricesheet"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
)

// importCommand is "nap prices import" before it runs.
type importCommand struct {
	priceList
	subscription string
	sheets       []string
	reservations string
	output       string

	// lookupEnv and connect are the surroundings.
	lookupEnv func(string) (string, bool)
	connect   func(*config.Config) (azureAccess, error)
}

func newPricesImport(s command.Streams) *cobra.Command {
	c := &importCommand{
		priceList: priceList{streams: s, http: &http.Client{Timeout: fetchTimeout}}, lookupEnv: os.LookupEnv, connect: connectAzure,
	}
	return c.command()
}

func (c *importCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a file for --prices-file of a subscription's price sheet and reservations",
		Long: `Read the price sheet of a subscription or billing account and the list of its
reservations, and print what they say of the VM sizes of a region as a file for
--prices-file.

With --subscription both are read from Azure, as whoever you are signed in, by
az login or the variables of a service principal; docs/prices.md has the roles.
What --price-sheet or --reservations gives is read from the file in its place.

A price sheet is CSV as the portal gives it (Cost Management + Billing, Usage +
charges, Azure price sheet), or a zip of it, of an Enterprise Agreement or a
Microsoft Customer Agreement, or JSON as az prints it. Its lines have meters;
Azure's list says which meter bills which size. It is read, too, and needs
no account. What the sheet does not name stays at the retail price; savings
plans are stated by hand (docs/prices.md).

Exit codes: 0 all was imported; 1 nothing was, and no file was written; 2 Azure
refuses a part, and the rest was imported. A file is written as a whole or not
at all, and one that is there is not replaced by one that lacks a part.`,
		Example: `  nap prices import --region eastus --subscription 0b1f6471-... -o prices.yaml

  az consumption pricesheet show -o json > sheet.json
  az reservations list -o json > reservations.json
  nap prices import --region eastus --price-sheet sheet.json --reservations reservations.json > prices.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&c.subscription, "subscription", "", "subscription whose price sheet and reservations are read from Azure")
	cmd.Flags().StringArrayVar(&c.sheets, "price-sheet", nil,
		"file with a price sheet, CSV, zip or JSON, - for standard input; again for further pages")
	cmd.Flags().StringVar(&c.reservations, "reservations", "",
		"file with reservations, as az reservations list -o json prints them, - for standard input")
	cmd.Flags().StringVarP(&c.output, "output-file", "o", "-", "write the prices to this file, - for standard output")
	return cmd
}

func (c *importCommand) run(ctx context.Context) error {
	region, err := c.check()
	if err != nil {
		return err
	}
	if c.subscription == "" && len(c.sheets) == 0 && c.reservations == "" {
		return errors.New("nothing to import: give --subscription SUBSCRIPTION to read from Azure, " +
			"--price-sheet FILE, --reservations FILE, or both")
	}
	if c.subscription != "" {
		if err := command.CheckSubscription(c.subscription); err != nil {
			return err
		}
	}
	if err := checkFile(c.output); err != nil {
		return err
	}
	from, err := c.sources()
	if err != nil {
		return err
	}
	got := &imported{region: region, now: time.Now()}
	if err := c.addReservations(ctx, from, got); err != nil {
		return err
	}
	if err := c.addPrices(ctx, from, got); err != nil {
		return err
	}
	return got.write(c.streams, c.output)
}

// sources connects to Azure where something is to be read from there; else it is nil.
func (c *importCommand) sources() (*billing.Reader, error) {
	if c.subscription == "" || len(c.sheets) > 0 && c.reservations != "" {
		return nil, nil
	}
	cloud, err := config.LoadCloud(c.lookupEnv, os.ReadFile)
	if err != nil {
		return nil, err
	}
	access, err := c.connect(&config.Config{SubscriptionID: c.subscription, Cloud: cloud})
	if err != nil {
		return nil, err
	}
	return billing.New(c.subscription, access.credential, access.options, func(line string) { fmt.Fprintln(c.streams.Err, line) })
}

// addReservations adds the reservations that pay for machines of the region.
func (c *importCommand) addReservations(ctx context.Context, from *billing.Reader, got *imported) error {
	at := pricesheet.Place{Region: got.region, Subscription: c.subscription}
	var found *pricesheet.Reservations
	var err error
	switch {
	case c.reservations != "":
		found, err = readFile(c, "--reservations", c.reservations, func(r io.Reader) (*pricesheet.Reservations, error) {
			return pricesheet.ReadReservations(r, at, got.now)
		})
	case from != nil:
		var list []byte
		if list, err = from.Reservations(ctx); err != nil {
			return got.without(err)
		}
		if string(list) == "[]" {
			got.notes = append(got.notes, "Azure shows you no reservation at all: of those that there are it shows the ones for which "+
				"you have a role, and all of them with Reservations Reader on /providers/Microsoft.Capacity")
		}
		found, err = pricesheet.ReadReservations(bytes.NewReader(list), at, got.now)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	got.terms.Reservations, got.until = found.Machines, found.Until
	got.notes = append(got.notes, found.Notes...)
	got.counts = append(got.counts,
		fmt.Sprintf("%d reserved machines of %d sizes in %s", machines(found.Machines), len(found.Machines), got.region))
	return nil
}

// addPrices adds the prices of the sheet.
func (c *importCommand) addPrices(ctx context.Context, from *billing.Reader, got *imported) error {
	sheet, name, flag := pricesheet.New(), strings.Join(c.sheets, ", "), "--price-sheet "
	switch {
	case len(c.sheets) > 0:
		for _, name := range c.sheets {
			_, err := readFile(c, "--price-sheet", name, func(r io.Reader) (struct{}, error) { return struct{}{}, sheet.Read(r, got.now) })
			if err != nil {
				return err
			}
		}
	case from != nil:
		var err error
		if sheet, err = from.Sheet(ctx, got.now); err != nil {
			return got.without(err)
		}
		name, flag = "the price sheet of subscription "+c.subscription, ""
	default:
		return nil
	}
	meters, err := c.client().Meters(ctx, got.region)
	if err != nil {
		return err
	}
	found := addMeters(&got.terms, sheet, meters)
	if found == 0 {
		return fmt.Errorf("%s%s: none of the %d meters of virtual machines in %s has a price by the hour in it; "+
			"is it the sheet of this billing account, with all of its services?", flag, name, len(meters), got.region)
	}
	got.counts = append(got.counts, fmt.Sprintf("%d of %d prices of virtual machines in %s are in %s; %d stay at the retail price",
		found, len(meters), got.region, name, len(meters)-found))
	got.notes = append(got.notes, notesOf(sheet)...)
	return nil
}

// addMeters adds to terms what a sheet says of meters, which come by size, and counts it.
func addMeters(terms *price.Terms, sheet *pricesheet.Sheet, meters []price.Meter) (found int) {
	for _, m := range meters {
		dollars, ok := sheet.Hourly(m.ID)
		if !ok {
			continue
		}
		found++
		if n := len(terms.Prices); n == 0 || terms.Prices[n-1].Size != m.Size {
			terms.Prices = append(terms.Prices, price.Negotiated{Size: m.Size})
		}
		into := &terms.Prices[len(terms.Prices)-1]
		if m.CapacityType == model.Spot {
			into.Spot = &dollars
		} else {
			into.OnDemand = &dollars
		}
	}
	return found
}

// notesOf is what a person should know of a sheet.
func notesOf(sheet *pricesheet.Sheet) []string {
	var notes []string
	if why := sheet.WhyUnused(); why != "" {
		notes = append(notes, "lines that count for nothing: "+why)
	}
	if n := sheet.Ended(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d prices of the sheet ended before today and are used all the same: "+
			"import the sheet of this month", n))
	}
	if sheet.More {
		notes = append(notes, "the sheet names a next page: give every page with --price-sheet")
	}
	return notes
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
			return none, fmt.Errorf("%s %s: %w: give the path of a file, or - for standard input", flag, name, plainPath(err))
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
