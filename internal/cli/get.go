package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// getCommand is "nap get" before it runs.
type getCommand struct {
	streams   command.Streams
	now       func() time.Time
	input     inputFlags
	output    string
	noHeaders bool
	sortBy    string
	selector  string
	filters   []string
	all       bool
	namespace string
}

// getKind is what can be listed, by its names.
type getKind struct {
	name    string
	aliases []string
}

// getKinds are what can be listed. NodePools and NodeClaims have kubectl's names, too.
func getKinds() []getKind {
	return []getKind{
		{"nodes", []string{"no", "node"}},
		{"pools", []string{"pool", "nodepools", "nodepool"}},
		{"claims", []string{"claim", "nodeclaims", "nodeclaim"}},
		{"moves", []string{"move", "commands", "command"}},
		{"offers", []string{"offer", "offerings", "offering"}},
	}
}

func newGet(s command.Streams, now func() time.Time) *cobra.Command {
	c := &getCommand{streams: s, now: now}
	cmd := &cobra.Command{
		Use:   "get (nodes | pools | claims | moves | offers) [NAME...]",
		Short: "List nodes, NodePools, NodeClaims, moves or offers with their prices",
		Long: `List what there is, with prices, load and what holds it, as kubectl get does:

  nodes    all nodes and machines on their way
  pools    NodePools, with limits, price and load, also those that are not nap's
  claims   NodeClaims, and how far they are
  moves    removals of nodes under way, the last ones, and what they wait for
  offers   what can be bought, where, and what Azure refuses

--sort-by takes a column, or a path in the JSON such as {.hourlyCost}. --filter
takes COLUMN=VALUE, COLUMN!=VALUE, COLUMN>NUMBER or COLUMN<NUMBER; columns are
those of -o wide, in any case. -A and -n are understood and change nothing: none
of this is in namespaces.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap get nodes --sort-by '$/h'
  nap get nodes -l karpenter.sh/nodepool=general -o wide
  nap get pools -o jsonpath='{.items[*].name}'
  nap get offers --filter size=D4s_v5 -o csv`,
		Args: c.checkKind,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1:]) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, k := range getKinds() {
				names = append(names, k.name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.input.add(cmd)
	flags := cmd.Flags()
	addOutput(cmd, &c.output, rowForms())
	flags.BoolVar(&c.noHeaders, "no-headers", false, "leave the line of headers out")
	flags.StringVar(&c.sortBy, "sort-by", "", "a column, or a path in the JSON")
	flags.StringVarP(&c.selector, "selector", "l", "", "only what has these labels, such as karpenter.sh/nodepool=general")
	flags.StringArrayVar(&c.filters, "filter", nil, "only what has this in a column, such as 'cpu<50' (repeatable)")
	flags.BoolVarP(&c.all, "all-namespaces", "A", false, "understood for kubectl's sake")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "understood for kubectl's sake")
	return cmd
}

// kindNamed is the kind that a word names, or "".
func kindNamed(word string) string {
	for _, k := range getKinds() {
		if word = strings.ToLower(word); word == k.name || slices.Contains(k.aliases, word) {
			return k.name
		}
	}
	return ""
}

func (c *getCommand) checkKind(cmd *cobra.Command, args []string) error {
	var names []string
	for _, k := range getKinds() {
		names = append(names, k.name)
	}
	if len(args) == 0 {
		return fmt.Errorf("got nothing to list, must be one of: %s, for instance %s nodes", strings.Join(names, ", "), cmd.CommandPath())
	}
	if kindNamed(args[0]) == "" {
		return fmt.Errorf("got %q, allowed: %s", args[0], strings.Join(names, ", "))
	}
	return nil
}

func (c *getCommand) run(ctx context.Context, kind string, names []string) error {
	if err := checkOutput(c.output, rowForms()); err != nil {
		return err
	}
	wanted, err := labels.Parse(c.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	list, err := c.list(ctx, kindNamed(kind))
	if err != nil {
		return err
	}
	if list.assuming != "" {
		fmt.Fprint(c.streams.Err, prose("%s", list.assuming))
	}
	if err := list.keep(names, wanted, c.filters); err != nil {
		return err
	}
	if err := list.sort(c.sortBy); err != nil {
		return err
	}
	if len(list.rows) == 0 && slices.Contains([]string{"table", "wide"}, c.output) {
		fmt.Fprintf(c.streams.Err, "No %s found.\n", list.kind)
	} else if err := list.write(c.streams.Out, c.output, c.noHeaders); err != nil {
		return err
	}
	for i := range list.rows {
		if note := list.rows[i].note; note != "" && c.output == "table" {
			sayNote(c.streams.Err, "%s", note)
		}
	}
	if list.refused {
		return &command.ExitError{Code: 1}
	}
	return nil
}
