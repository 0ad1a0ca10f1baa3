package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// kindWords are what kubectl and people call the kinds of workloads, pods, nodes and NodePools,
// without the API group.
func kindWords() map[string]string {
	return map[string]string{
		"deploy": "Deployment", "deployment": "Deployment", "deployments": "Deployment",
		"sts": "StatefulSet", "statefulset": "StatefulSet", "statefulsets": "StatefulSet",
		"ds": "DaemonSet", "daemonset": "DaemonSet", "daemonsets": "DaemonSet",
		"rs": "ReplicaSet", "replicaset": "ReplicaSet", "replicasets": "ReplicaSet",
		"rc": "ReplicationController", "replicationcontroller": "ReplicationController", "replicationcontrollers": "ReplicationController",
		"job": "Job", "jobs": "Job", "cj": cronJob, "cronjob": cronJob, "cronjobs": cronJob,
		"po": "Pod", "pod": "Pod", "pods": "Pod", "no": "Node", "node": "Node", "nodes": "Node",
		"nodepool": "NodePool", "nodepools": "NodePool", "pool": "NodePool", "nodeclaim": "Node", "nodeclaims": "Node",
	}
}

// cronJob is the kind of workload whose pods are of its Jobs.
const cronJob = "CronJob"

// sizePrefix is what the names of Azure's VM sizes begin with.
const sizePrefix = "Standard_"

// explainAny explains what a word names: a reason, a VM size, a NodePool, a node, a pod or
// a workload.
func (c *explainCommand) explainAny(ctx context.Context, name string) error {
	if err := c.check(); err != nil {
		return err
	}
	kind := ""
	if word, rest, found := strings.Cut(name, "/"); found {
		word, _, _ = strings.Cut(strings.ToLower(word), ".") // as in deployment.apps
		if k := kindWords()[word]; k != "" {
			kind, name = k, rest
		}
	}
	if kind == "" && isReason(name) {
		return c.explainReason(name)
	}
	_, _, err := offline.SizeAndFamily(name)
	if known := err == nil; kind == "" && (known || len(name) > len(sizePrefix) && strings.EqualFold(name[:len(sizePrefix)], sizePrefix)) {
		return c.explainOffer(ctx, name)
	}
	read, err := c.plan.input.read(ctx, c.plan.streams.In)
	if err != nil {
		return err
	}
	c.plan.input.already = read
	if kind == "" {
		kind = c.kindOf(read, name)
	}
	switch kind {
	case "NodePool":
		return c.explainPool(ctx, name)
	case "Node":
		c.plan.consolidate = true
		return c.explainNode(ctx, name)
	case "Pod":
		return c.explainPod(ctx, c.qualified(name))
	case "":
		tellRefused(c.plan.streams.Err, read.problems)
		return fmt.Errorf("nothing is called %s: no reason, VM size, NodePool, node, pod or workload (in namespace %s, or as NAMESPACE/NAME)",
			name, c.namespaceOr())
	}
	return c.explainWorkload(ctx, kind, name)
}

// namespaceOr is the namespace of names without one.
func (c *explainCommand) namespaceOr() string {
	if c.namespace != "" {
		return c.namespace
	}
	if c.plan.input.live() {
		return c.plan.input.cluster.Namespace()
	}
	return "default"
}

// qualified is a name with its namespace.
func (c *explainCommand) qualified(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return c.namespaceOr() + "/" + name
}

// kindOf is the kind of what is called so, "Workload" for any that has pods, or "".
func (c *explainCommand) kindOf(read *planInput, name string) string {
	if read.pools[name] != nil || read.saidOf(name) {
		return "NodePool"
	}
	for _, o := range read.objects.Distinct() {
		switch o.(type) {
		case *corev1.Node, *v1.NodeClaim:
			if o.GetName() == name {
				return "Node"
			}
		}
	}
	full, kind := c.qualified(name), ""
	for p := range read.store.Snapshot().Pods() {
		if p.Ref.String() == full {
			return "Pod"
		}
		if _, owner, _ := strings.Cut(p.OwnerName(), " "); owner == full {
			kind = "Workload"
		}
	}
	return kind
}

func newExplainWorkload(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now}}
	cmd := &cobra.Command{
		Use:   "workload [NAMESPACE/]NAME",
		Short: "Say of all pods of a workload where they go, or why some stay pending",
		Long: `Say of a Deployment, StatefulSet, Job or what else has pods how many run, how
many get a place and where, and how many stay pending, why, and what helps.

Exit code 0: all pods have a place. 2: some stay pending. 1: an error.`,
		Example: `  nap explain workload shop/web -f docs/examples/web.yaml
  nap explain deploy/web -n shop`,
		Args: one("the name of a workload", "shop/web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			return c.explainWorkload(cmd.Context(), "Workload", args[0])
		},
	}
	c.add(cmd)
	return cmd
}

// explainWorkload tells of the pods of a workload; kind is "Workload" for any.
func (c *explainCommand) explainWorkload(ctx context.Context, kind, name string) error {
	made, err := c.plan.make(ctx)
	if err != nil {
		return err
	}
	made.talk(c.plan.streams.Err)
	if err := made.read.sayOffline(&c.plan.streams, c.output); err != nil {
		return err
	}
	owner, refs, err := made.podsOf(kind, c.qualified(name))
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return c.noPods(kind, c.qualified(name))
	}
	s, pending, err := made.explainWorkload(owner, refs)
	if err != nil {
		return err
	}
	if err := c.tell(s); err != nil {
		return err
	}
	return answered(made.read, pending)
}

// noPods is the error that a workload has no pods.
func (c *explainCommand) noPods(kind, full string) error {
	switch {
	case kind == cronJob && !c.plan.input.due:
		return fmt.Errorf("no pod of a Job of CronJob %s; --due plans the CronJobs of files as if their time had come", full)
	case kind == "DaemonSet":
		return fmt.Errorf("no pod of DaemonSet %s; one of a file has no pods of its own: nap plan counts it on each new node", full)
	}
	return fmt.Errorf("no pod of a %s %s; nap plan -o wide lists all", strings.ToLower(kind), full)
}

// podsOf are the pods of a workload, by name, and what it is called. It fails where workloads
// of several kinds have the name.
func (m *madePlan) podsOf(kind, full string) (owner string, refs []model.PodRef, err error) {
	owners := map[string]bool{}
	for p := range m.read.store.Snapshot().Pods() {
		of, name, _ := strings.Cut(p.OwnerName(), " ")
		if isWorkload(kind, full, of, name) && !p.Terminal {
			if owner = p.OwnerName(); kind == cronJob {
				owner = kind + " " + full // which may have several Jobs
			}
			owners[owner] = true
			refs = append(refs, p.Ref)
		}
	}
	if len(owners) > 1 {
		names := slices.Sorted(maps.Keys(owners))
		of, name, _ := strings.Cut(names[0], " ")
		_, name, _ = strings.Cut(name, "/")
		return "", nil, fmt.Errorf("%s may be %s; give the kind instead of workload: nap explain %s/%s",
			full, strings.Join(names, " or "), strings.ToLower(of), name)
	}
	slices.SortFunc(refs, func(x, y model.PodRef) int { return strings.Compare(x.String(), y.String()) })
	return owner, refs, nil
}

// isWorkload reports whether an owner of pods is the workload of a kind and a name. A CronJob's
// Jobs are called as it is and when they were due, in minutes; the one that --due makes of a file
// is called as it is.
func isWorkload(kind, full, of, name string) bool {
	if kind != cronJob {
		return name == full && (kind == "Workload" || kind == of)
	}
	rest, begins := strings.CutPrefix(name, full)
	minutes, dashed := strings.CutPrefix(rest, "-")
	_, err := strconv.ParseUint(minutes, 10, 64)
	return of == "Job" && begins && (rest == "" || dashed && err == nil)
}

// explainWorkload is the story of pods, and whether some stay pending.
func (m *madePlan) explainWorkload(owner string, refs []model.PodRef) (*story, bool, error) {
	var first, placed *story
	running, waiting, places := 0, 0, map[string]int{}
	for _, ref := range refs {
		if record := m.input.Record(ref); record != nil && record.Node != "" {
			running++
			continue
		}
		s, pending, err := m.explainPod(ref)
		if err != nil {
			return nil, false, err
		}
		if pending {
			if waiting++; first == nil {
				first = s
			}
			continue
		}
		if placed == nil {
			placed = s
		}
		_, where, _ := strings.Cut(s.Verdict, " ")
		places[where]++
	}
	out := &story{Lines: []string{}}
	switch {
	case first != nil:
		out.Verdict = fmt.Sprintf("%s: %d of %s %s pending: %s.",
			owner, waiting, plural(len(refs), "pod"), verbFor(waiting, "stays"), first.words.Why)
		out.Nearest, out.Fix, out.words = first.Nearest, first.Fix, first.words
		out.Remedies, out.Commands = first.Remedies, first.Commands
	case placed != nil:
		places := "all get"
		if len(refs)-running == 1 {
			places = "it gets"
		}
		out.Verdict = fmt.Sprintf("%s: %d of %s %s, and %s a place.",
			owner, len(refs)-running, plural(len(refs), "pod"), verbFor(len(refs)-running, "waits"), places)
	default:
		out.Verdict = fmt.Sprintf("%s: all %s run.", owner, plural(len(refs), "pod"))
	}
	if running > 0 && running < len(refs) {
		out.say("%d %s", running, verbFor(running, "runs"))
	}
	for _, where := range sortedByCount(places) {
		out.say("%d x %s", places[where], severally(places[where], strings.TrimSuffix(where, ".")))
	}
	if first != nil {
		out.Lines = append(out.Lines, first.Lines...)
	}
	return out, first != nil, nil
}

// verbFor is the verb of a sentence about so many, of which the form for one is given.
func verbFor(n int, one string) string {
	switch {
	case n == 1:
		return one
	case one == "is":
		return "are"
	}
	return strings.TrimSuffix(one, "s")
}

// severally is what is said of one pod, said of so many: it begins with the verb.
func severally(n int, said string) string {
	first, rest, _ := strings.Cut(said, " ")
	verb := strings.TrimRight(first, ",")
	return verbFor(n, verb) + first[len(verb):] + " " + rest
}

// sortedByCount are the keys, the most frequent first.
func sortedByCount(counts map[string]int) []string {
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	return keys
}
