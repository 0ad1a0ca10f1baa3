package labcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab"
)

// notReadyCode is the exit code of "nap lab status" for a lab that is not ready.
const notReadyCode = 3

func newLabStatus(s command.Streams, dir *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what of the lab runs",
		Long: `Show the parts of the lab, whether they are ready, and the memory they use.
Memory is the resident set; pages that processes share are counted in each.

Exit codes: 0 all is ready, 3 it is not, 1 there is no lab.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output=%s: must be table or json", output)
			}
			state, err := lab.Inspect(*dir)
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeStatusJSON(s.Out, state)
			} else {
				err = writeStatusTable(s.Out, state, time.Now())
			}
			if err == nil && !state.Healthy() {
				err = &command.ExitError{Code: notReadyCode}
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// writeStatusJSON writes the state without the secret in it.
func writeStatusJSON(w io.Writer, state *lab.State) error {
	state.ControlToken = ""
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(state)
}

func writeStatusTable(w io.Writer, state *lab.State, now time.Time) error {
	fmt.Fprintf(w, "lab %s: %s, Kubernetes %s, %d nodes\n", state.Dir, state.Phase, cmp.Or(state.Served, state.KubernetesVersion), state.Nodes)
	if state.Phase == lab.PhaseKilled {
		fmt.Fprintln(w, "its supervisor was killed; continue with: nap lab up, or end what is left with: nap lab down")
	} else if state.Phase != lab.PhaseStopped {
		fmt.Fprintf(w, "%s, KUBECONFIG=%s\n", state.Server, state.Kubeconfig)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tSTATUS\tPID\tRESTARTS\tAGE\tMEMORY\tMESSAGE")
	total := state.ResidentBytes
	fmt.Fprintf(table, "supervisor\t%s\t%s\t-\t%s\t%s\t\n", state.Phase, pid(state.Supervisor),
		age(now, state.StartedAt, state.Supervisor), mebibytes(state.ResidentBytes))
	for _, p := range state.Parts {
		message := p.Unready
		if message == "" && p.LastExit != "" {
			message = "before: " + p.LastExit
		}
		if message == "" && p.Pod != "" {
			message = "pod " + p.Pod
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.Name, p.Status, pid(p.Process),
			p.Restarts, age(now, p.StartedAt, p.Process), mebibytes(p.ResidentBytes), message)
		total += p.ResidentBytes
	}
	fmt.Fprintf(table, "total\t\t\t\t\t%s\t\n", mebibytes(total))
	return table.Flush()
}

func pid(id lab.Identity) string {
	if id.PID == 0 {
		return "-"
	}
	return strconv.Itoa(id.PID)
}

func age(now, started time.Time, id lab.Identity) string {
	if id.PID == 0 || started.IsZero() {
		return "-"
	}
	return now.Sub(started).Round(time.Second).String()
}

func mebibytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
