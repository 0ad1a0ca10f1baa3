package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// statusCommand is "nap status" before it runs.
type statusCommand struct {
	streams command.Streams
	now     func() time.Time
	input   inputFlags
	output  string
	watch   bool
	// namespace is that of the pods that are shown, empty for all; all wins over it.
	namespace string
	all       bool
}

func newStatus(s command.Streams, now func() time.Time) *cobra.Command {
	c := &statusCommand{streams: s, now: now}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen what there is, what it costs, what waits and what is under way",
		Long: `Show NodePools, their price and load, pods that wait and why, machines on their
way, moves, and what Azure refuses. All of it is what the controller publishes,
so that reading snapshots of nap.azure.com is all the right that is needed.
Without a controller, or with -f, the objects are looked at, and the first line
says what is assumed. A controller with --engine=karpenter publishes nothing of
NodePools, pods and machines: these are looked at, too, and moves are not known.

With -w the screen is drawn again every two seconds, until it is interrupted.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap status
  nap status -w --context prod
  nap status -o json`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.input.add(cmd)
	addOutput(cmd, &c.output, documentForms())
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "show only pods that wait in this namespace")
	cmd.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "show pods that wait in all namespaces, which is the default")
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "draw the screen again every two seconds")
	return cmd
}

// watchEvery is how often -w draws the screen.
const watchEvery = 2 * time.Second

func (c *statusCommand) run(ctx context.Context) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if err := checkNamespace(c.namespace); err != nil {
		return err
	}
	if c.watch && c.output != "table" {
		return fmt.Errorf("--watch: draws the table, got -o %s", c.output)
	}
	for {
		s, err := c.look(ctx)
		if err != nil {
			return err
		}
		if c.namespace != "" && !c.all {
			s.keepNamespace(c.namespace)
		}
		if c.output != "table" {
			if err := writeDocument(c.streams.Out, c.output, s); err != nil {
				return err
			}
			return s.ended()
		}
		if c.watch && command.IsTerminal(c.streams.Out) {
			fmt.Fprint(c.streams.Out, "\x1b[H\x1b[2J")
		}
		screen := &statusScreen{
			clusterStatus: s, at: c.now(), ink: inkFor(c.streams.Out),
			offered: func(text string) string { return offeredIn(&c.streams, text) },
		}
		if _, err := io.WriteString(c.streams.Out, screen.String()); err != nil {
			return err
		}
		if !c.watch {
			return s.ended()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// clusterStatus is the output of nap status -o json. Its fields are a promise:
// docs/plan-json.md documents them.
type clusterStatus struct {
	// Cluster is what people call it.
	Cluster string `json:"cluster,omitempty"`
	// Assuming is what the answer assumes where no controller tells; empty otherwise.
	Assuming string `json:"assuming,omitempty"`
	// Silent says that the controller has written nothing for long.
	Silent       bool    `json:"silent"`
	Nodes        int     `json:"nodes"`
	HourlyCost   float64 `json:"hourlyCost"`
	MonthlyCost  float64 `json:"monthlyCost"`
	PendingPods  int     `json:"pendingPods"`
	EvictionsNow int     `json:"evictionsUnderWay"`
	// Status is what the Snapshot says, or what the objects do.
	Status v1alpha1.SnapshotStatus `json:"status"`
	// refused says that objects of files were refused, which standard error tells.
	refused bool
}

// ended is how the command ends.
func (s *clusterStatus) ended() error {
	if s.refused {
		return &command.ExitError{Code: 1}
	}
	return nil
}

// look reads the status of this moment.
func (c *statusCommand) look(ctx context.Context) (*clusterStatus, error) {
	out := &clusterStatus{}
	if c.input.live() && len(c.input.files) == 0 {
		out.Cluster = c.input.cluster.Name()
		config, err := c.input.cluster.Config(ctx)
		if err != nil {
			return nil, err
		}
		told, err := readSnapshot(ctx, config)
		if err != nil {
			return nil, unreadable(&c.input.cluster, config.Host, err)
		}
		if told.document != nil {
			out.Status = told.document.Status
			out.Silent = c.now().Sub(out.Status.Written.Time) > 3*snapshot.Heartbeat
			if !told.tellsFleet() {
				_, err = c.fromObjects(ctx, out)
			}
			out.total()
			return out, err
		}
	}
	told, err := c.fromObjects(ctx, out)
	if out.Assuming = told.offline(); out.Assuming == "" {
		out.Assuming = "offline: assuming list prices: from files, which no controller stands behind"
	}
	out.total()
	return out, err
}

// fromObjects fills in what the objects say, for no controller tells it.
func (c *statusCommand) fromObjects(ctx context.Context, out *clusterStatus) (*told, error) {
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	tellRefused(c.streams.Err, read.problems)
	if note := c.input.otherRegion(&read.objects); note != "" {
		sayNote(c.streams.Err, "%s", note)
	}
	s := &out.Status
	out.refused = len(read.problems) > 0
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	now := read.store.Snapshot()
	views, err := now.Views(ctx, source)
	if err != nil {
		return nil, err
	}
	s.Region = source.Region
	s.NodePools, s.OtherNodes = snapshot.Pools(now, views, c.now())
	s.Machines, s.UsualBootSeconds = snapshot.Machines(now, c.now())
	s.Leaving = snapshot.Leaving(now, c.now())
	s.Pending = waiting(now)
	for i := range s.Pending {
		s.PendingPods += s.Pending[i].Pods
	}
	return read.told, nil
}

// keepNamespace leaves only the pods of a namespace among those that wait.
func (s *clusterStatus) keepNamespace(namespace string) {
	s.Status.Pending = slices.DeleteFunc(s.Status.Pending, func(w v1alpha1.PendingWorkload) bool {
		return !strings.HasPrefix(w.Pod, namespace+"/")
	})
	s.PendingPods = 0
	for i := range s.Status.Pending {
		s.PendingPods += int(s.Status.Pending[i].Pods)
	}
	s.Status.PendingPods = int32(s.PendingPods)
}

// waiting are the workloads of the pods that want a node, the largest first.
func waiting(now *fleet.Snapshot) []v1alpha1.PendingWorkload {
	byOwner := map[string]*v1alpha1.PendingWorkload{}
	for p := range now.Pods() {
		if !p.Wanted || p.Node != "" {
			continue
		}
		w := byOwner[p.OwnerName()]
		if w == nil {
			w = &v1alpha1.PendingWorkload{Workload: p.OwnerName(), Pod: p.Ref.String(), Message: "nap explain says why"}
			byOwner[p.OwnerName()] = w
		}
		w.Pods++
		w.Pod = min(w.Pod, p.Ref.String())
	}
	return sortedPending(byOwner)
}

// total adds up what the parts say.
func (s *clusterStatus) total() {
	s.Nodes = int(s.Status.OtherNodes)
	for i := range s.Status.NodePools {
		p := &s.Status.NodePools[i]
		s.Nodes += int(p.Nodes)
		if cost, err := strconv.ParseFloat(p.HourlyCost, 64); err == nil {
			s.HourlyCost += cost
		}
	}
	s.MonthlyCost = s.HourlyCost * model.HoursPerMonth
	s.PendingPods = int(s.Status.PendingPods)
	for i := range s.Status.Moves {
		s.EvictionsNow += int(s.Status.Moves[i].Evictions)
	}
}
