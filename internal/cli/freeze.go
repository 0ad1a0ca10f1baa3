package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// The annotations and the object that the commands write.
const (
	annotationRetire = v1beta1.AnnotationRetire
	annotationRetry  = v1beta1.AnnotationRetry
	snapshotName     = v1alpha1.SnapshotName
)

// longestFreeze bounds --for: what is longer is without an end.
const longestFreeze = 365 * 24 * time.Hour

func newFreeze(s command.Streams, now func() time.Time) *cobra.Command {
	o := &operator{streams: s, now: now}
	var lasts time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "freeze [NODEPOOL...]",
		Short: "Stop voluntary removals of nodes, while purchases go on",
		Long: `Stop consolidation and the replacement of drifted nodes, for some NodePools or
for all that there are: for a release, or while something is looked into. Nodes
are still bought, and still go when they expire, when Azure takes them back or
when they are repaired. Moves that wait for their replacement are rolled back;
those that evict already end.

A frozen NodePool says so in its condition Frozen and in an event. nap thaw ends
it.`,
		Example: `  nap freeze --for 2h --reason "release 4.2"
  nap freeze general
  nap thaw`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lasts < 0 || lasts > longestFreeze {
				return fmt.Errorf("--for: got %s, allowed: 0s (until nap thaw) to %s", lasts, longestFreeze)
			}
			if length := utf8.RuneCountInString(reason); length > 200 || strings.ContainsAny(reason, "\n\r") {
				return fmt.Errorf("--reason: got %d characters, allowed: one line of at most 200", length)
			}
			return o.freeze(cmd.Context(), args, lasts, reason)
		},
		ValidArgsFunction: o.names(kindNodePool, math.MaxInt),
	}
	o.add(cmd)
	cmd.Flags().DurationVar(&lasts, "for", 0, "how long, such as 2h; 0s, the default, until nap thaw")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever asks what holds the nodes")
	return cmd
}

func newThaw(s command.Streams, now func() time.Time) *cobra.Command {
	o := &operator{streams: s, now: now}
	cmd := &cobra.Command{
		Use:   "thaw [NODEPOOL...]",
		Short: "Let nodes be removed voluntarily again",
		Long:  `End what nap freeze began, for some NodePools or for all that are frozen.`,
		Example: `  nap thaw
  nap thaw general`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.thaw(cmd.Context(), args) },

		ValidArgsFunction: o.names(kindNodePool, math.MaxInt),
	}
	o.add(cmd)
	return cmd
}

// pools are the NodePools of these names, or all.
func (o *operator) pools(ctx context.Context, names []string) ([]string, map[string]bool, error) {
	if err := o.connect(ctx); err != nil {
		return nil, nil, err
	}
	items, err := o.list(ctx, kindNodePool)
	if err != nil {
		return nil, nil, err
	}
	frozen := map[string]bool{}
	for i := range items {
		_, is := items[i].GetAnnotations()[v1beta1.AnnotationFrozen]
		frozen[items[i].GetName()] = is
	}
	for _, name := range names {
		if err := checkNamed(items, "NodePool", name); err != nil {
			return nil, nil, err
		}
	}
	if len(names) == 0 {
		for i := range items {
			names = append(names, items[i].GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names), frozen, nil
}

func (o *operator) freeze(ctx context.Context, names []string, lasts time.Duration, reason string) error {
	pools, frozen, err := o.pools(ctx, names)
	if err != nil {
		return err
	}
	if err := o.needsEngine("knows no freeze", `set spec.disruption.budgets of the NodePools to [{nodes: "0"}]`); err != nil {
		return err
	}
	if len(pools) == 0 {
		return fmt.Errorf("nothing to freeze: the cluster has no NodePool")
	}
	values := map[string]any{v1beta1.AnnotationFrozen: reason, v1beta1.AnnotationFrozenUntil: nil}
	until := "until nap thaw"
	if lasts > 0 {
		end := o.now().Add(lasts).UTC().Format(time.RFC3339)
		values[v1beta1.AnnotationFrozenUntil], until = end, "until "+end
	}
	for _, pool := range pools {
		if err := o.annotate(ctx, kindNodePool, pool, values); err != nil {
			return err
		}
	}
	o.say("Frozen %s: %s. Nodes are still bought.\nUndo: %s", until, strings.Join(pools, ", "),
		o.streams.Offered(thawOf(pools, len(names) > 0, frozen)))
	return nil
}

// thawOf is the command that undoes a freeze of pools, which the user named or not. frozen says of
// each NodePool whether it was frozen before: what another freeze holds, the undo leaves alone,
// unless all of pools were.
func thawOf(pools []string, named bool, frozen map[string]bool) string {
	fresh := slices.DeleteFunc(slices.Clone(pools), func(name string) bool { return frozen[name] })
	switch {
	case !named && len(fresh) == len(frozen):
		return "nap thaw"
	case len(fresh) == 0:
		fresh = pools
	}
	return "nap thaw " + strings.Join(fresh, " ")
}

func (o *operator) thaw(ctx context.Context, names []string) error {
	pools, frozen, err := o.pools(ctx, names)
	if err != nil {
		return err
	}
	pools = slices.DeleteFunc(pools, func(name string) bool { return !frozen[name] })
	if len(pools) == 0 {
		o.say("Nothing to thaw: no NodePool is frozen.")
		return nil
	}
	for _, pool := range pools {
		if err := o.annotate(ctx, kindNodePool, pool, map[string]any{
			v1beta1.AnnotationFrozen: nil, v1beta1.AnnotationFrozenUntil: nil,
		}); err != nil {
			return err
		}
	}
	o.say("Thawed: %s.", strings.Join(pools, ", "))
	return nil
}
