package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// dryRunReport is what nap enable --dry-run and nap disable --dry-run say to programs. Its fields
// are a promise: docs/plan-json.md documents them.
type dryRunReport struct {
	// Checks are the prerequisites, Azure and Releases what nap enable looks for and makes where it
	// is missing.
	Checks   *doctorReport `json:"checks,omitempty"`
	Azure    []dryStep     `json:"azure,omitempty"`
	Releases []dryRelease  `json:"releases,omitempty"`
	// Removes is what nap enable --undo removes, in order.
	Removes []dryRemoval `json:"removes,omitempty"`
	// Writes are patches of objects of the cluster, in order.
	Writes []dryWrite `json:"writes"`
	// Missing are the fixed machines that pods need without nap's nodes.
	Missing *dryMissing `json:"missing,omitempty"`
}

// dryStep is a thing in Azure, with the commands that make it and remove it.
type dryStep struct {
	What  string `json:"what"`
	There bool   `json:"there"`
	Make  string `json:"make,omitempty"`
	Undo  string `json:"undo,omitempty"`
}

// dryRelease is a release of Helm, with the command that removes it.
type dryRelease struct {
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Namespace string `json:"namespace"`
	Undo      string `json:"undo"`
	// Memory is the limit that it gets since the cluster is large; empty for the chart's own.
	Memory string `json:"memory,omitempty"`
	// Shadow says that it is a shadow now, and would not be one any more.
	Shadow bool `json:"shadow,omitempty"`
}

// dryRemoval is a thing that is removed, with the command that does so, too.
type dryRemoval struct {
	What    string `json:"what"`
	Command string `json:"command"`
}

// dryWrite is a patch (merge) of an object.
type dryWrite struct {
	Kind  string          `json:"kind"`
	Name  string          `json:"name"`
	Patch json.RawMessage `json:"patch"`
}

// dryMissing is which machines are missing for the pods of nap's nodes, of one size: none where
// Count is zero.
type dryMissing struct {
	Nodes        int     `json:"nodes"`
	Pods         int     `json:"pods"`
	InstanceType string  `json:"instanceType,omitempty"`
	Count        int     `json:"count"`
	HourlyCost   float64 `json:"hourlyCost"`
	Command      string  `json:"command,omitempty"`
	// WithoutPlace is how many of the pods find no place even there.
	WithoutPlace int `json:"withoutPlace"`
}

// addOutput adds the flag --output, by which programs read a dry run.
func (o *operator) addOutput(cmd *cobra.Command) {
	addOutput(cmd, &o.output, textForms())
	cmd.Flags().Lookup("output").Usage += "; goes with --dry-run"
}

// checkOutput refuses a form that there is not, and a document of what is done and not only
// looked at.
func (o *operator) checkOutput() error {
	if err := checkOutput(o.output, textForms()); err != nil {
		return err
	}
	if isDocument(o.output) && !o.dryRun {
		return fmt.Errorf("--output: got %q, which goes with --dry-run: what is done is said in sentences", o.output)
	}
	return nil
}

// forPrograms reports whether programs read what is said.
func (o *operator) forPrograms() bool { return isDocument(o.output) }

// wouldWrite tells of a patch that a dry run does not write.
func (o *operator) wouldWrite(kind, name string, patch []byte) error {
	if o.forPrograms() {
		o.would.Writes = append(o.would.Writes, dryWrite{kind, name, patch})
		return nil
	}
	_, err := fmt.Fprintf(o.streams.Out, "would write to %s %s: %s\n", kind, name, patch)
	return err
}

// tellPrograms writes what a dry run has found for programs, and nothing for people, who have read
// it.
func (o *operator) tellPrograms() error {
	if !o.forPrograms() {
		return nil
	}
	o.would.Writes = append([]dryWrite{}, o.would.Writes...)
	return writeDocument(o.streams.Out, o.output, &o.would)
}

// uninstall is the command that removes a release.
func uninstall(release, namespace string) string {
	return fmt.Sprintf("helm uninstall %s --namespace %s", release, namespace)
}

// wouldInstall tells of a release that a dry run does not install.
func (o *operator) wouldInstall(r *dryRelease) {
	if o.forPrograms() {
		o.would.Releases = append(o.would.Releases, *r)
		return
	}
	fmt.Fprintf(o.streams.Out, "\nrelease %s of chart %s in namespace %s\n", r.Name, r.Chart, r.Namespace)
	if r.Memory != "" {
		fmt.Fprintf(o.streams.Out, "  memory limit: %s\n", r.Memory)
	}
	if r.Shadow {
		fmt.Fprintln(o.streams.Out, "  it is a shadow, which only watches; with shadow.enabled=false it buys")
	}
	fmt.Fprintf(o.streams.Out, "  undo: %s\n", r.Undo)
}

// wouldRemove tells of a thing that a dry run does not remove.
func (o *operator) wouldRemove(what, command string) {
	if o.forPrograms() {
		o.would.Removes = append(o.would.Removes, dryRemoval{what, command})
		return
	}
	fmt.Fprintf(o.streams.Out, "would remove %s: %s\n", what, command)
}
