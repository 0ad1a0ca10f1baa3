package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// planCommand is "nap plan" before it runs.
type planCommand struct {
	streams command.Streams
	// now is the clock; tests replace it with one that stands still, which also
	// takes the time out of the output.
	now func() time.Time

	input       inputFlags
	output      string
	engine      string
	budget      time.Duration
	seed        uint64
	replay      string
	rules       planRules
	shown       shownForm
	consolidate bool
	pendingOnly bool
	// compare is another engine whose answer nap savings adds; empty for none.
	compare string
	terms   command.TermFlags
}

// planRules are the flags that say what a plan has to keep to.
type planRules struct {
	preferences, minValues string
	share                  model.NodeShare
}

// shownForm is how much of an answer is written.
type shownForm struct {
	// alternatives is how many other offerings JSON lists for each node.
	alternatives int
	// scope are the pods that are shown, noHeaders leaves the headers of tables out.
	scope     podScope
	noHeaders bool
}

func newPlan(s command.Streams) *cobra.Command {
	return (&planCommand{streams: s, now: time.Now}).command()
}

func (c *planCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | --context NAME)",
		Short: "Show what would be bought, given back and replaced, what goes where, and why not",
		Long: `Plan for the objects of files, or of a live cluster, without touching anything:
what would be bought, at what price, what nothing can beat, which pods go where,
which stay pending, why, and what would help; and which nodes would be given
back or replaced by cheaper ones, what that saves and how many pods it evicts.

Files may hold any mix of Pods, Deployments, StatefulSets, ReplicaSets, Jobs,
CronJobs (planned with --due), DaemonSets, objects of other kinds that have a
template of pods, HorizontalPodAutoscalers, ScaledObjects of KEDA, Nodes,
NodeClaims, PersistentVolumes and their claims, StorageClasses, CSINodes,
VolumeAttachments, PodDisruptionBudgets, PriorityClasses, RuntimeClasses,
LimitRanges, ResourceQuotas, Namespaces, NodePools, NodeOverlays, AKSNodeClasses
and Lists, also as kubectl get -o yaml prints them. Files without a NodePool get
the default one; files that come from no cluster get the StorageClasses that AKS
creates, beside their own. With a live cluster, -f adds what would be applied to
it.

With --pending-only, look at pods that wait alone. With --consolidate, look at
nodes alone, in the order in which they would go, and say why the others stay.
With -n or -l, all pods are planned for and only what concerns those is shown,
without moves. Of NodePools with spec.replicas, the answer says how many nodes
they get or lose beside it.

Exit code 0: nothing to do. 2: something would change, or pods stay pending;
with --pending-only, pods stay pending; with --consolidate, nodes would go. 1:
an error, or an object that cannot be read, that the API server would refuse or
whose pods cannot be counted (the others are planned all the same).`,
		Example: `  nap plan -f app.yaml
  nap plan -f manifests/ --region westeurope -o wide
  kubectl get nodes,nodepools,pods,pvc,pv -A -o yaml | nap plan -f -
  nap plan --context prod -f next-release.yaml -o json
  nap plan --context prod --consolidate`,
		Args:    noFiles,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return c.checkTerms(cmd) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.input.add(cmd)
	flags := cmd.Flags()
	addOutput(cmd, &c.output, planForms())
	flags.BoolVar(&c.shown.noHeaders, "no-headers", false, "leave the lines of headers out")
	c.shown.scope.add(cmd)
	flags.StringVar(&c.engine, "engine", engineNap, "nap, or karpenter to see what Karpenter's own scheduler would do (slow for many pods)")
	completeWords(cmd, "engine", engineNap, engineKarpenter)
	flags.IntVar(&c.shown.alternatives, "alternatives", 10, "how many other offerings to list per node, in json and yaml")
	flags.BoolVar(&c.pendingOnly, "pending-only", false, "look at pods that wait alone; exit code 0 when every pod has a place")
	flags.BoolVar(&c.consolidate, "consolidate", false, "show which nodes would be removed instead of what would be bought")
	c.terms.AddWithGate(flags)
	c.policyFlags(cmd)
	return cmd
}

// checkTerms refuses what decides about moves of nodes where no node is looked at, and what
// an answer that is repeated has of its own.
func (c *planCommand) checkTerms(cmd *cobra.Command) error {
	without := ""
	switch {
	case c.pendingOnly:
		without = "--pending-only"
	case c.replay != "":
		without = "--replay"
	case c.engine == engineKarpenter:
		without = "--engine karpenter"
	case c.shown.scope.narrow():
		without = "-n and -l"
	}
	for _, flag := range []string{"eviction-price", "eviction-payback", "consolidation-minimum-saving", "spot-to-spot"} {
		if without != "" && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s: decides which nodes move, and with %s none is looked at; leave one of them out", flag, without)
		}
	}
	for _, flag := range []string{"budget", "seed"} {
		if c.replay != "" && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s: --replay repeats an answer with that answer's own; leave one of them out", flag)
		}
	}
	return nil
}

// noFiles refuses arguments: they are mostly files without -f.
func noFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("got %q, but files are given with -f: %s -f %s", args[0], cmd.CommandPath(), args[0])
}

func (c *planCommand) policyFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&c.budget, "budget", 250*time.Millisecond, "time in which to improve the first plan; 0 takes the first one")
	flags.Uint64Var(&c.seed, "seed", 0, "breaks ties that names cannot")
	flags.StringVar(&c.replay, "replay", "",
		"a file with an earlier answer of -o json or yaml: take the same course again, with its budget and seed, instead of watching the clock")
	flags.StringVar(&c.rules.preferences, "preference-policy", "Respect", "Respect or Ignore preferred affinity and ScheduleAnyway")
	flags.StringVar(&c.rules.minValues, "min-values-policy", "Strict", "Strict or BestEffort minValues of NodePools")
	completeWords(cmd, "preference-policy", "Respect", "Ignore")
	completeWords(cmd, "min-values-policy", "Strict", "BestEffort")
	command.AddNodeShare(flags, &c.rules.share)
}

// planForms are the forms of its output.
func planForms() []string { return []string{"table", "wide", "json", "yaml", jsonPath} }

// The engines of --engine.
const (
	engineNap       = "nap"
	engineKarpenter = "karpenter"
)

// oneOf checks a flag's value.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("--%s: got %q, allowed: %s", flag, value, strings.Join(allowed, ", "))
}

func (c *planCommand) check() error {
	for _, err := range []error{
		checkOutput(c.output, planForms()),
		c.shown.scope.check(),
		oneOf("engine", c.engine, engineNap, engineKarpenter),
		oneOf("preference-policy", c.rules.preferences, "Respect", "Ignore"),
		oneOf("min-values-policy", c.rules.minValues, "Strict", "BestEffort"),
	} {
		if err != nil {
			return err
		}
	}
	if err := c.rules.share.Check(); err != nil {
		return err
	}
	if c.budget < 0 {
		return fmt.Errorf("--budget: got %s, must not be negative", c.budget)
	}
	if c.shown.alternatives < 0 {
		return fmt.Errorf("--alternatives: got %d, must not be negative", c.shown.alternatives)
	}
	if c.replay != "" && (c.consolidate || c.engine != engineNap) {
		return errors.New("--replay: repeats plans of engine nap, and neither --consolidate nor --engine karpenter")
	}
	if c.consolidate && c.shown.scope.narrow() {
		return errors.New("--consolidate: looks at nodes, which -n and -l do not choose; leave them out")
	}
	if c.pendingOnly && c.consolidate {
		return errors.New("--pending-only and --consolidate: look at pods that wait alone, and at nodes alone; give one of them")
	}
	if err := c.terms.Check(); err != nil && !c.terms.IsZero() {
		return err
	}
	if !c.consolidate {
		return nil
	}
	if c.engine != engineNap {
		return fmt.Errorf("--consolidate: answered by engine nap alone, got --engine %s", c.engine)
	}
	return c.terms.Check()
}

func (c *planCommand) run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.consolidate {
		return c.runConsolidate(ctx)
	}
	made, err := c.makeReleasing(ctx)
	if err != nil {
		return err
	}
	whole := !c.pendingOnly && c.replay == "" && c.engine == engineNap && !c.shown.scope.narrow()
	if whole {
		if err := errors.Join(c.addMoves(ctx, made), c.addStatic(ctx, made)); err != nil {
			return err
		}
	}
	made.talk(c.streams.Err)
	if made.notReplayed > 0 {
		sayNote(c.streams.Err, "--replay plans for pods that wait alone, as --pending-only does, and repeats none of the %s of %s",
			plural(made.notReplayed, "move"), c.replay)
	}
	if c.shown.scope.narrow() {
		if err := c.shown.scope.keep(made); err != nil {
			return err
		}
	}
	if err := made.read.sayOffline(&c.streams, c.output); err != nil {
		return err
	}
	if err := made.write(c.streams.Out, c); err != nil {
		return err
	}
	switch {
	case made.refused():
		return &command.ExitError{Code: 1}
	case len(made.report.Unschedulable) > 0 || !c.pendingOnly && made.changes():
		return &command.ExitError{Code: 2}
	}
	return nil
}

// refused reports whether objects of the input were refused as a whole.
func (m *madePlan) refused() bool {
	return len(m.read.problems)+len(m.read.overlays.refused) > 0 ||
		slices.ContainsFunc(m.input.Problem.LeftOut, func(l model.LeftOut) bool { return l.Reason == model.ReasonPoolInvalid }) ||
		slices.ContainsFunc(m.plan.Rejected, func(r model.Rejection) bool { return r.Kind == "NodePool" })
}

// madePlan is a plan with everything that it takes to speak about it.
type madePlan struct {
	read   *planInput
	source *offline.Source
	input  *fleet.Input
	plan   *model.Plan
	report *planReport
	took   time.Duration
	seed   uint64
	// sharesCost is how much dearer the plan is because of caps of what a node may hold.
	sharesCost model.Money
	// at is when it was made.
	at time.Time
	// moves are the nodes that would be removed beside it; nil where that was not asked for,
	// or there are no nodes of NodePools.
	moves *movesReport
	// decided are the pods on which the live cluster's controller has decided.
	decided []decided
	// raises are how far limits must be raised, as far as that was asked.
	raises map[poolLimit]*raisedLimit
	// notReplayed is how many moves the answer has that is repeated without them.
	notReplayed int
}

// make reads the input and plans.
func (c *planCommand) make(ctx context.Context) (*madePlan, error) {
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	return c.makeFor(ctx, read)
}

// makeReleasing is make, for a report that needs no single objects: it releases what was read.
func (c *planCommand) makeReleasing(ctx context.Context) (*madePlan, error) {
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	if c.engine == engineNap && !c.shown.scope.narrow() {
		release(read)
	}
	return c.makeFor(ctx, read)
}

// makeFor plans for what was read.
func (c *planCommand) makeFor(ctx context.Context, read *planInput) (*madePlan, error) {
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	start := c.now()
	made := &madePlan{read: read, source: source, at: start}
	elapsed := func() time.Duration { return c.now().Sub(start) }
	policy := c.policy(elapsed)
	if c.replay != "" {
		if policy.Replay, made.notReplayed, err = readReplay(c.replay); err != nil {
			return nil, err
		}
		policy.Budget, policy.Seed = policy.Replay.Budget, policy.Replay.Seed
	}
	made.input, err = read.store.Snapshot().Problem(ctx, source, fleet.Options{Now: start, Policy: policy})
	if err != nil {
		return nil, err
	}
	if read.told != nil && read.told.document != nil && len(c.input.files) == 0 {
		made.decided = read.told.take(made.input.Problem)
	}
	made.plan = planner.Solve(made.input.Problem)
	made.took = elapsed()
	if made.sharesCost, err = c.costOfShares(ctx, made, policy); err != nil {
		return nil, err
	}
	made.seed = policy.Seed
	made.report = newPlanReport(made)
	if c.engine == engineKarpenter {
		start = c.now()
		report, err := c.solveWithKarpenter(ctx, made)
		if err != nil {
			return nil, err
		}
		report.Summary.PlanMillis = elapsed().Round(time.Millisecond).Milliseconds()
		made.report = report
	}
	made.report.HeldBack = read.quotas.Held()
	return made, nil
}

// costOfShares is how much dearer the plan is than one without caps of what a node may
// hold; zero where other pods have a place.
func (c *planCommand) costOfShares(ctx context.Context, m *madePlan, policy model.Policy) (model.Money, error) {
	if policy.Share == (model.NodeShare{}) {
		return 0, nil
	}
	policy.Share, policy.Replay, policy.Elapsed = model.NodeShare{}, nil, nil
	free, err := m.read.store.Snapshot().Problem(ctx, m.source, fleet.Options{Now: m.at, Policy: policy})
	if err != nil {
		return 0, err
	}
	plan := planner.Solve(free.Problem)
	if left(plan) != left(m.plan) {
		return 0, nil
	}
	return max(0, m.plan.Cost-plan.Cost), nil
}

// left is how many pods of a plan have no place.
func left(plan *model.Plan) int {
	n := 0
	for _, u := range plan.Unschedulable {
		n += len(u.Pods)
	}
	return n
}

// readReplay reads the record of a plan from a file that holds the plan as -o json or
// yaml prints it, and how many moves the answer has beside it.
func readReplay(path string) (record *model.Replay, moves int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("--replay %s: %w: give the path of an answer of nap plan -o json or yaml", path, plainPath(err))
	}
	var plan struct {
		Summary struct {
			Replay *model.Replay `json:"replay"`
		} `json:"summary"`
		Moves []any `json:"moves"`
	}
	if err := yaml.Unmarshal(text, &plan); err != nil {
		return nil, 0, fmt.Errorf("--replay: %s is no answer of nap plan -o json or yaml: %w", path, err)
	}
	if plan.Summary.Replay == nil {
		return nil, 0, fmt.Errorf("--replay: %s has no summary.replay; nap plan -o json writes it where --budget is above 0", path)
	}
	return plan.Summary.Replay, len(plan.Moves), nil
}

func (c *planCommand) policy(elapsed func() time.Duration) model.Policy {
	return model.Policy{
		IgnorePreferences: c.rules.preferences == "Ignore",
		RelaxMinValues:    c.rules.minValues == "BestEffort",
		Budget:            c.budget,
		Elapsed:           elapsed,
		Seed:              c.seed,
		Share:             c.rules.share,
	}
}

// talk says on standard error what the reader should know beside the plan.
func (m *madePlan) talk(w io.Writer) {
	for _, r := range m.plan.Rejected {
		fmt.Fprintf(w, "nap: %s %s is left out: %s\n", r.Kind, r.Name, r.Message)
	}
	m.read.talk(w, m.input.Problem.LeftOut, m.source)
	n, first := 0, ""
	for _, x := range m.input.Rejected {
		if x.Quiet {
			n, first = n+1, cmp.Or(first, x.Pod.String())
		}
	}
	if n > 0 {
		sayNote(w, "left out, for nap has no node for it: %s with rules that keep it off the nodes of every NodePool, the first is %s",
			plural(n, "pod"), first)
	}
}

// sayOffline begins an answer for people with what is assumed where no controller tells,
// and with what of the cluster is left aside.
// Answers for programs have it on standard error.
func (p *planInput) sayOffline(s *command.Streams, form string) error {
	w := s.Out
	if isDocument(form) {
		w = s.Err
	}
	for _, line := range []string{p.told.offline(), p.overlays.ignored(p.told)} {
		if line == "" {
			continue
		}
		if _, err := io.WriteString(w, prose("%s", line)); err != nil {
			return err
		}
	}
	return nil
}

// tellRefused says what is wrong with objects.
func tellRefused(w io.Writer, problems []error) {
	for _, err := range problems {
		fmt.Fprintf(w, "nap: %v\n", err)
	}
}

// answered ends a command: with exit code 1 where objects of its files were refused, which
// standard error tells, or else with 2 where the answer is the one of that code.
func answered(read *planInput, two bool) error {
	switch {
	case len(read.problems) > 0:
		return &command.ExitError{Code: 1}
	case two:
		return &command.ExitError{Code: 2}
	}
	return nil
}

// talk says what is wrong with the input, and what was assumed.
func (p *planInput) talk(w io.Writer, leftOut []model.LeftOut, s *offline.Source) {
	tellRefused(w, slices.Concat(p.problems, p.overlays.refused))
	for _, l := range leftOut {
		if !p.saidOf(l.Pool) && !l.Static {
			fmt.Fprintf(w, "nap: NodePool %s buys nothing: %s\n", l.Pool, l.Message)
		}
	}
	for _, note := range p.notes {
		sayNote(w, "%s", note)
	}
	if s.Note != "" {
		sayNote(w, "%s", s.Note)
	}
}
