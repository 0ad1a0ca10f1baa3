// Package cli is the command line of nap, the program for people: one file per
// command, and Main, which runs the one that was typed. The commands of the
// controller and of the lab are programs of their own (controllercli, labcli);
// nap starts them with the same arguments.
package cli

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// Main runs nap with the arguments that follow the program's name and returns
// the exit code. The version is what "nap version" prints.
func Main(ctx context.Context, args []string, version string, s command.Streams) int {
	s = s.Until(ctx)
	return command.Run(ctx, newRoot(version, s, time.Now), args, s)
}

// Plugin is Main for the program as kubectl runs it, by the name kubectl-nap: help and the
// commands that answers offer then say "kubectl nap".
func Plugin(ctx context.Context, args []string, version string, s command.Streams) int {
	s = asPlugin(s).Until(ctx)
	return command.Run(ctx, pluginOf(newRoot(version, s, time.Now), &s), args, s)
}

// newRoot makes the whole tree of commands; now is their clock.
func newRoot(version string, s command.Streams, now func() time.Time) *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:     "nap",
		Version: version,
		Short:   "Provision Kubernetes nodes on Azure, and prove the price",
		Long: `nap buys virtual machines for pods that cannot be scheduled, and gives them
back when fewer or cheaper ones would do.

To see it work on this machine, without Azure and without containers:

  nap lab up`,
	})
	root.SetVersionTemplate("nap {{.Version}}\n")
	root.AddCommand(
		newLab(s.Whole()),
		newController(s.Whole()),
		newStatus(s, now),
		newGet(s, now),
		newPlan(s),
		newSavings(s, now),
		newLedger(s, now),
		newShadow(s, now),
		newCatalog(s),
		newExplain(s, now),
		newWhatIf(s, now),
		newDiff(s, now),
		newDisable(s, now),
		newEnable(s, now),
		newFreeze(s, now),
		newThaw(s, now),
		newProtect(s),
		newRetire(s, now),
		newRetry(s, now),
		newPrices(s),
		newImages(s),
		newMachine(s),
		newDoctor(s),
		newConvert(s),
		newLint(s),
		newVersion(version, s),
	)
	completeContexts(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return checkStandardInput(cmd) }
	return root
}

// checkStandardInput refuses flags that want to read standard input after another one: they would
// find it empty.
func checkStandardInput(cmd *cobra.Command) error {
	var readers []string
	for _, flag := range []string{"filename", "from", "price-sheet", "reservations"} {
		f := cmd.Flags().Lookup(flag)
		if f == nil {
			continue
		}
		names := []string{f.Value.String()}
		if many, is := f.Value.(pflag.SliceValue); is {
			names = many.GetSlice()
		}
		for _, name := range names {
			if name == "-" {
				readers = append(readers, shortest(f)+" -")
			}
		}
	}
	if len(readers) < 2 {
		return nil
	}
	return fmt.Errorf("%s: standard input can be read once: give a file in the place of all but one -", strings.Join(readers, ", "))
}

// shortest is a flag as people type it.
func shortest(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

func newVersion(version string, s command.Streams) *cobra.Command {
	form := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of nap",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(form, textForms()); err != nil {
				return err
			}
			if isDocument(form) {
				return writeDocument(s.Out, form, built{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(s.Out, "nap %s\n", version)
			return err
		},
	}
	addOutput(cmd, &form, textForms())
	return cmd
}

// built is what nap version says to programs.
type built struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}
