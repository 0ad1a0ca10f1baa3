package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// explainLines is how long an explanation may get without -v.
const explainLines = 12

// newExplain is the group of commands that say why.
func newExplain(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now}}
	cmd := &cobra.Command{
		Use:   "explain [WORKLOAD | POD | NODE | SIZE | NODEPOOL | REASON]",
		Short: "Say why a pod goes where it goes, why a node stays or goes, and why a size is bought or not",
		Long: `Say why. What is asked about is found by its name: the code of a reason, a VM
size, a NodePool, a node or NodeClaim, a pod, or a workload; deploy/web,
pod/web-0, node/x and the like say which. Names without a namespace are of -n,
or of the context's.

Exit code 0: the pod has a place or has ended, the size can be bought, the node
stays. 2: not; a pod that waits for something else than a node has no place
either. 1: an error.`,
		Example: `  nap explain deploy/web -n shop
  nap explain web-0 -f app.yaml
  nap explain Standard_D4s_v5
  nap explain QuotaExceeded`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return one("what to explain", "deploy/web")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return c.explainAny(cmd.Context(), args[0])
		},
	}
	c.add(cmd)
	c.plan.terms.AddWithGate(cmd.Flags())
	cmd.AddCommand(newExplainWorkload(s, now), newExplainPod(s, now), newExplainNode(s, now), newExplainOffer(s, now),
		newExplainPool(s, now), newExplainReason(s))
	return cmd
}

// one wants exactly one argument, and says what it is.
func one(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("got %s, must be one: %s, for instance %s %s", plural(len(args), "argument"), what, cmd.CommandPath(), example)
	}
}

// explainCommand is what all explanations have in common.
type explainCommand struct {
	plan    planCommand
	output  string
	verbose bool
	// namespace is that of names without one; empty for the context's.
	namespace string
}

func (c *explainCommand) add(cmd *cobra.Command) {
	c.plan.input.add(cmd)
	c.plan.policyFlags(cmd)
	addOutput(cmd, &c.output, documentForms())
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "the namespace of names without one (default: the context's, or default)")
	cmd.Flags().BoolVarP(&c.verbose, "verbose", "v", false, "say everything, however long")
}

func (c *explainCommand) check() error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	c.plan.output, c.plan.engine = "table", engineNap
	return c.plan.check()
}

// story is an explanation: the verdict first, then reasons in the order of
// their weight.
type story struct {
	Verdict string         `json:"verdict"`
	Lines   []string       `json:"details"`
	Nearest *reportNearest `json:"nearest,omitempty"`
	Fix     string         `json:"fix,omitempty"`
	// Commands are those of the fix, which work as they are.
	Commands []string `json:"commands,omitempty"`

	// Remedies are changes that give a pod which waits a place, the cheapest first. Their
	// commands are among Commands.
	Remedies []remedy `json:"remedies,omitempty"`

	// words explain why a pod stays pending; empty for everything else.
	words explain.Pending
}

func (s *story) say(format string, args ...any) {
	s.Lines = append(s.Lines, fmt.Sprintf(format, args...))
}

// advise adds remedies.
func (s *story) advise(remedies []remedy) {
	s.Remedies = remedies
	for i := range remedies {
		s.Commands = append(s.Commands, remedies[i].Command)
	}
}

// orLook adds a command to begin with where no change is known to help.
func (s *story) orLook(a *adviser, reason model.Reason, nearest *model.NearestMiss) {
	if command := a.lookCommand(reason, nearest); len(s.Commands) == 0 && command != "" {
		s.Commands = append(s.Commands, command)
	}
}

// tell prints a story, with commands that ask about the same input.
func (c *explainCommand) tell(s *story) error {
	for i := range s.Commands {
		s.Commands[i] = c.plan.input.again(s.Commands[i])
	}
	return s.write(&c.plan.streams, c.output, c.verbose)
}

// write prints the story, with commands as they have to be typed here.
func (s *story) write(streams *command.Streams, form string, verbose bool) error {
	w := streams.Out
	for i := range s.Commands {
		s.Commands[i] = streams.Offered(s.Commands[i])
	}
	for i := range s.Remedies {
		s.Remedies[i].Command = streams.Offered(s.Remedies[i].Command)
	}
	if form != "table" {
		return writeDocument(w, form, s)
	}
	for _, text := range []*string{&s.Verdict, &s.Fix, &s.words.Nearest, &s.words.NotCause} {
		*text = offeredIn(streams, *text)
	}
	for i := range s.Lines {
		s.Lines[i] = offeredIn(streams, s.Lines[i])
	}
	blocks := s.blocks()
	lines, hidden := flatten(blocks, explainLines)
	if verbose {
		lines, hidden = flatten(blocks, math.MaxInt)
	}
	k := inkFor(w)
	for i := range min(len(blocks[0].lines), len(lines)) {
		lines[i] = k.bold(lines[i])
	}
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf("... and %s; -v shows all", plural(hidden, "more line")))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// block is a part of an explanation, as lines that fit the screen. It is shown whole, or where
// there is no room for that, its first lines, or not at all.
type block struct {
	lines []string
	// head are so many lines that say something without the others; zero for none.
	head int
}

// blocks are the parts of the explanation in the order of their weight.
func (s *story) blocks() []block {
	blocks := []block{{lines: wrapIndented(s.Verdict)}}
	say := func(text string) { blocks = append(blocks, block{lines: wrapIndented(text)}) }
	if s.words.Nearest != "" {
		say("nearest miss: " + s.words.Nearest)
	}
	advice, notCause := wrapIndented("fix: "+s.Fix), "not the cause: "+s.words.NotCause
	long := len(advice) > 2 && len(s.Remedies) > 0 // then the command says it better
	if s.Fix != "" && !long {
		blocks = append(blocks, block{lines: advice})
	}
	for i := range s.Remedies {
		change, command := s.Remedies[i].lines(i + 1)
		blocks = append(blocks, block{append(change, command...), len(change)})
		if i > 0 {
			continue
		}
		if s.words.NotCause != "" {
			say(notCause)
		}
		if long {
			blocks = append(blocks, block{lines: advice})
		}
	}
	if len(s.Remedies) == 0 {
		for _, text := range s.Commands {
			var lines []string
			for _, line := range breakCommand(text) {
				lines = append(lines, commandIndent+line)
			}
			blocks = append(blocks, block{lines: lines})
		}
		if s.words.NotCause != "" {
			say(notCause)
		}
	}
	for _, line := range s.Lines {
		say(line)
	}
	return blocks
}

// flatten puts as many blocks as fit into some lines one below the other, and says how many
// lines did not fit. A last line is kept free where some do not.
func flatten(blocks []block, most int) (lines []string, hidden int) {
	total := 0
	for _, b := range blocks {
		total += len(b.lines)
	}
	if total > most {
		most--
	}
	for i, b := range blocks {
		room := most - len(lines)
		shown := len(b.lines)
		switch {
		case shown <= room:
		case i == 0:
			shown = room
		case b.head <= room:
			shown = b.head
		default:
			shown = 0
		}
		lines, hidden = append(lines, b.lines[:shown]...), hidden+len(b.lines)-shown
	}
	return lines, hidden
}
