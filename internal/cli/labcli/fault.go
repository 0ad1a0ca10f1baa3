package labcli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// newLabFaultCommand is "nap lab fault": what goes wrong in the simulated Azure
// of the lab whose folder is *dir.
func newLabFaultCommand(s command.Streams, dir *string) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "fault",
		Short: "Break the simulated Azure, and mend it again",
		Long: `Break the simulated Azure of the running lab: take capacity or quota away,
throttle or fail calls, slow or hang operations, keep machines from booting,
evict spot machines, switch the whole API off. Every fault is listed and can be
removed.`,
	})
	cmd.AddCommand(newFaultList(s, dir), newFaultAdd(s, dir), newFaultRemove(s, dir), newFaultClear(s, dir))
	return cmd
}

// withAzure runs f with the administration of the lab's Azure.
func withAzure(dir string, f func(*cloud.Client) error) error {
	azure, err := cloud.Open(dir)
	if err != nil {
		return err
	}
	defer azure.Close()
	return f(azure)
}

func newFaultList(s command.Streams, dir *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the faults in force",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output=%s: must be table or json", output)
			}
			return withAzure(*dir, func(azure *cloud.Client) error {
				faults, err := azure.Faults(cmd.Context())
				if err != nil {
					return err
				}
				if output == "json" {
					encoder := json.NewEncoder(s.Out)
					encoder.SetIndent("", "  ")
					return encoder.Encode(faults)
				}
				if len(faults) == 0 {
					fmt.Fprintln(s.Err, "no faults are in force; add one with: nap lab fault add KIND"+lab.DirFlag(*dir))
					return nil
				}
				return writeFaults(s.Out, faults, time.Now())
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// writeFaults prints one line a fault.
func writeFaults(w io.Writer, faults []armsim.Fault, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tKIND\tSELECTS\tEFFECT\tSTRUCK\tENDS")
	for _, f := range faults {
		ends := "when removed"
		if f.Duration > 0 {
			ends = "in " + f.Added.Add(f.Duration).Sub(now).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", f.ID, f.Kind, cmp.Or(faultSelects(f), "all"), cmp.Or(faultEffect(f), "-"), f.Hits, ends)
	}
	return table.Flush()
}

// pairs writes name=value for those that have a value.
func pairs(namesAndValues ...string) string {
	var out []string
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			out = append(out, namesAndValues[i]+"="+namesAndValues[i+1])
		}
	}
	return strings.Join(out, " ")
}

func faultSelects(f armsim.Fault) string {
	return pairs("size", f.Size, "zone", f.Zone, "priority", f.Priority, "family", f.Family, "operation", f.Operation, "resource", f.Resource)
}

func faultEffect(f armsim.Fault) string {
	var limit, rate, factor, retry, status string
	if f.Limit != nil {
		limit = strconv.FormatInt(*f.Limit, 10)
	}
	if f.Rate > 0 {
		rate = strconv.FormatFloat(f.Rate, 'g', -1, 64)
	}
	if f.Factor > 0 {
		factor = strconv.FormatFloat(f.Factor, 'g', -1, 64)
	}
	if f.RetryAfter > 0 {
		retry = f.RetryAfter.String()
	}
	if f.Status > 0 {
		status = strconv.Itoa(f.Status)
	}
	return pairs("limit", limit, "rate", rate, "factor", factor, "retry-after", retry, "status", status, "code", f.Code)
}

// faultKind is one kind of fault on the command line.
type faultKind struct {
	kind    armsim.FaultKind
	short   string
	example string
	flags   []string // besides --duration
}

// machineSelectors are the flags that choose machines.
var machineSelectors = []string{"size", "zone", "priority", "family", "resource"}

// faultKinds are the kinds with the flags that make sense for each.
func faultKinds() []faultKind {
	machines := func(more ...string) []string { return append(slices.Clone(machineSelectors), more...) }
	return []faultKind{
		{armsim.FaultCapacity, "No capacity for the machines selected",
			"--size 'Standard_D*' --zone 1 --priority Spot", machines("rate", "code")},
		{armsim.FaultPolicy, "Let a policy of the subscription deny sizes", "--size 'Standard_D*'", []string{"size"}},
		{armsim.FaultQuota, "Cut the quota of a family, of all cores, or of spot",
			"--family standardDSv5Family --limit 8", []string{"family", "limit"}},
		{armsim.FaultThrottle, "Answer calls with 429", "--rate 0.3 --retry-after 10s", []string{"operation", "resource", "rate", "retry-after"}},
		{armsim.FaultError, "Answer calls with an error", "--operation 'Microsoft.Network/*' --rate 0.1 --status 500",
			[]string{"operation", "resource", "rate", "status", "code", "message"}},
		{armsim.FaultSlow, "Let operations take longer", "--factor 10", machines("operation", "rate", "factor")},
		{armsim.FaultHang, "Let operations not end until the fault is removed",
			"--operation Microsoft.Compute/virtualMachines/write --rate 0.05", machines("operation", "rate")},
		{armsim.FaultFail, "Let the creation of machines end with an error",
			"--code OSProvisioningTimedOut --rate 0.1", machines("operation", "rate", "code", "message")},
		{armsim.FaultNoBoot, "Create machines that never start their operating system", "--rate 0.1", machines("rate")},
		{armsim.FaultProvisioning, "Let machines boot, and what their image does then fail",
			"--size Standard_D4s_v5 --code 50", machines("rate", "code", "message")},
		{armsim.FaultEvict, "Evict spot machines, now and when they boot", "--resource aks-default-x7k2p", machines("rate")},
		{armsim.FaultOutage, "Switch the API off", "--duration 2m", []string{"operation", "resource", "status", "code"}},
	}
}

func newFaultAdd(s command.Streams, dir *string) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "add KIND",
		Short: "Add a fault",
		Long: `Add a fault of one of the kinds below; "nap lab fault add KIND --help" lists its
flags. Selectors are names in which * stands for any run of characters; without
selectors a fault strikes everything. Its ID is printed.`,
	})
	known := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("the KIND of fault is missing; there are: %s", kindNames())
		}
		return known(c, args)
	}
	for _, k := range faultKinds() {
		cmd.AddCommand(newFaultAddKind(s, dir, k))
	}
	return cmd
}

func kindNames() string {
	var names []string
	for _, k := range armsim.FaultKinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func newFaultAddKind(s command.Streams, dir *string, k faultKind) *cobra.Command {
	f := armsim.Fault{Kind: k.kind}
	var limit int64
	cmd := &cobra.Command{
		Use:     string(k.kind),
		Short:   k.short,
		Example: "  nap lab fault add " + string(k.kind) + " " + k.example,
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") {
				f.Limit = &limit
			}
			if err := f.Validate(); err != nil {
				return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
			}
			return addFault(cmd.Context(), s, *dir, f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.Duration, "duration", 0, "how long it lasts, as 30s or 5m; 0 means until it is removed")
	for _, name := range k.flags {
		switch name {
		case "size":
			flags.StringVar(&f.Size, name, "", "VM sizes, as Standard_D*s_v5")
		case "zone":
			flags.StringVar(&f.Zone, name, "", "zone, as 1; 0 for machines without a zone")
		case "priority":
			flags.StringVar(&f.Priority, name, "", "Regular or Spot")
		case "family":
			flags.StringVar(&f.Family, name, "", "quota family, as standardDSv5Family; for quota also cores and lowPriorityCores")
		case "operation":
			flags.StringVar(&f.Operation, name, "", "Azure action, as Microsoft.Compute/virtualMachines/write; also oauth2/token and retail/prices")
		case "resource":
			flags.StringVar(&f.Resource, name, "", "resource ID, or the name at its end")
		case "rate":
			flags.Float64Var(&f.Rate, name, 0, "share of the calls or machines that it strikes, as 0.1; 0 means all")
		case "status":
			flags.IntVar(&f.Status, name, 0, "HTTP status, 400 to 599; 0 means 500 for error and 503 for outage")
		case "code":
			flags.StringVar(&f.Code, name, "", codeHelp(k.kind))
		case "message":
			flags.StringVar(&f.Message, name, "", "error message; for provisioning the last lines of its output")
		case "limit":
			flags.Int64Var(&limit, name, 0, "the limit in vCPUs (required)")
		case "factor":
			flags.Float64Var(&f.Factor, name, 0, "how many times longer, greater than 1 (required)")
		case "retry-after":
			flags.DurationVar(&f.RetryAfter, name, 0, "what Retry-After says; 0 means 10s")
		}
	}
	return cmd
}

// codeHelp says what --code means for a kind.
func codeHelp(kind armsim.FaultKind) string {
	switch kind {
	case armsim.FaultCapacity:
		return "error code, as AllocationFailed; empty means what Azure says for such a machine"
	case armsim.FaultOutage:
		return "error code, or abort to close connections instead of answering"
	case armsim.FaultProvisioning:
		return "exit code of the image's provisioning scripts, as 52; empty means 50, no outbound connection"
	case armsim.FaultFail:
		return "error code with which creation ends, as OSProvisioningTimedOut (required)"
	default: // the other kinds have no further parameters
	}
	return "error code; empty means InternalServerError"
}

func addFault(ctx context.Context, s command.Streams, dir string, f armsim.Fault) error {
	return withAzure(dir, func(azure *cloud.Client) error {
		added, err := azure.Add(ctx, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "%s is in force; end it with: nap lab fault remove %s%s\n", added.Kind, added.ID, lab.DirFlag(dir))
		_, err = fmt.Fprintln(s.Out, added.ID)
		return err
	})
}

func newFaultRemove(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "End a fault; what it held back goes on",
		Args:  command.Exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAzure(*dir, func(azure *cloud.Client) error {
				if err := azure.Remove(cmd.Context(), args[0]); err != nil {
					return fmt.Errorf("%w; those in force: nap lab fault list%s", err, lab.DirFlag(*dir))
				}
				fmt.Fprintf(s.Err, "fault %s is removed\n", args[0])
				return nil
			})
		},
	}
}

func newFaultClear(s command.Streams, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "End all faults",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAzure(*dir, func(azure *cloud.Client) error {
				if err := azure.ClearFaults(cmd.Context()); err != nil {
					return err
				}
				fmt.Fprintln(s.Err, "all faults are removed")
				return nil
			})
		},
	}
}
