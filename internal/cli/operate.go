package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
)

// operator is what the commands that change a cluster have in common. They write
// annotations, nap disable and nap enable also the fields that close and open NodePools.
type operator struct {
	streams command.Streams
	now     func() time.Time
	cluster command.Cluster
	// dryRun writes nothing; with askServer the API server says whether it would take it.
	dryRun, askServer bool
	// output is the form of what a dry run says, would what it says to programs.
	output string
	would  dryRunReport

	kube client.Client
	told *told
}

func (o *operator) add(cmd *cobra.Command) {
	o.cluster.Add(cmd.Flags())
	flag := cmd.Flags().VarPF((*dryRun)(o), "dry-run", "",
		"write nothing and say what would be: client, or server to have the API server check it")
	flag.NoOptDefVal = "client"
	completeFlag(cmd, "dry-run", func() []string { return []string{"client", "server", "none"} })
}

// The kinds that are annotated.
var (
	kindNodePool  = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
	kindNodeClaim = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}
	kindNode      = corev1.SchemeGroupVersion.WithKind("Node")
	kindMode      = schema.GroupVersionKind{Group: "nap.azure.com", Version: "v1alpha1", Kind: "NodeAutoProvisioning"}
	kindSnapshot  = schema.GroupVersionKind{Group: "nap.azure.com", Version: "v1alpha1", Kind: "Snapshot"}
)

// connect reaches the cluster, and asks what its controller tells.
func (o *operator) connect(ctx context.Context) error {
	config, err := o.cluster.Config(ctx)
	if err != nil {
		return err
	}
	if o.kube, err = client.New(config, client.Options{}); err != nil {
		return fmt.Errorf("reach the cluster at %s: %w", config.Host, err)
	}
	if o.told, err = readSnapshot(ctx, config); err != nil {
		return unreadable(&o.cluster, config.Host, err)
	}
	return nil
}

// needsEngine refuses what a controller with Karpenter's engine would not do.
func (o *operator) needsEngine(what, instead string) error {
	if o.told.document == nil {
		sayNote(o.streams.Err, "%s; what is written counts once a controller of nap runs", o.told.why)
		return nil
	}
	if engine := o.told.document.Status.Engine; engine == engineKarpenter {
		return fmt.Errorf("the controller runs with --engine=karpenter, which %s: %s", what, instead)
	}
	return nil
}

// list reads all objects of a kind.
func (o *operator) list(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := o.kube.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster does not know %ss: install nap first (docs/install.md)", kind.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// checkNamed wants an object of this name among others; the error names those that there are.
func checkNamed(items []unstructured.Unstructured, kind, name string) error {
	var all []string
	for i := range items {
		if items[i].GetName() == name {
			return nil
		}
		all = append(all, items[i].GetName())
	}
	slices.Sort(all)
	return fmt.Errorf("no %s %s; there are %s", kind, name, cmp.Or(strings.Join(all[:min(5, len(all))], ", "), "none"))
}

// annotate sets annotations of an object, and removes those that are nil.
func (o *operator) annotate(ctx context.Context, kind schema.GroupVersionKind, name string, values map[string]any) error {
	return o.write(ctx, kind, name, map[string]any{"metadata": map[string]any{"annotations": values}})
}

// dryRun is the flag --dry-run, with the values of kubectl's.
type dryRun operator

func (d *dryRun) String() string {
	switch {
	case d.askServer:
		return "server"
	case d.dryRun:
		return "client"
	}
	return "none"
}

func (d *dryRun) Type() string { return "client|server|none" }

func (d *dryRun) Set(text string) error {
	switch text {
	case "none", "false", "client", "true", "server":
		d.dryRun, d.askServer = text != "none" && text != "false", text == "server"
		return nil
	}
	return fmt.Errorf("got %q, allowed: client, server, none", text)
}

// names lets a shell complete the names of a kind, up to so many of them.
func (o *operator) names(kind schema.GroupVersionKind, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		config, err := o.cluster.Config(cmd.Context())
		if err == nil {
			o.kube, err = client.New(config, client.Options{})
		}
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		items, err := o.list(cmd.Context(), kind)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for i := range items {
			if name := items[i].GetName(); !slices.Contains(args, name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// check has the API server say whether it would take a change, where that is asked for.
func (o *operator) check(ctx context.Context, kind schema.GroupVersionKind, name string, patch []byte) error {
	if !o.askServer {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	if err := o.kube.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.DryRunAll); err != nil {
		return fmt.Errorf("the API server would refuse to change %s %s: %w", kind.Kind, name, err)
	}
	return nil
}

// write merges a patch into an object.
func (o *operator) write(ctx context.Context, kind schema.GroupVersionKind, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if o.dryRun {
		if err := o.check(ctx, kind, name, patch); err != nil {
			return err
		}
		return o.wouldWrite(kind.Kind, name, patch)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	err = o.kube.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("write to %s %s: %w: ask for the right to patch it (the ClusterRole nap-edit has it)", kind.Kind, name, err)
	}
	if err != nil {
		return fmt.Errorf("write to %s %s: %w", kind.Kind, name, err)
	}
	return nil
}

// say tells what was done, unless nothing was.
func (o *operator) say(format string, args ...any) {
	if !o.dryRun {
		fmt.Fprint(o.streams.Out, offered(&o.streams, fmt.Sprintf(format+"\n", args...)))
	}
}

func newProtect(s command.Streams) *cobra.Command {
	o := &operator{streams: s, now: time.Now}
	undo := false
	cmd := &cobra.Command{
		Use:   "protect NODE",
		Short: "Keep a node from being removed voluntarily",
		Long: `Write the annotation karpenter.sh/do-not-disrupt on a node: it is not
consolidated, and not replaced because it has drifted. It still goes when it
expires, when Azure takes it back, or when it is repaired. --undo removes the
annotation.`,
		Example: `  nap protect aks-general-7xk2p
  nap protect aks-general-7xk2p --undo`,
		Args: one("the name of a node", "aks-general-7xk2p"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.protect(cmd.Context(), args[0], undo) },

		ValidArgsFunction: o.names(kindNode, 1),
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node be removed again")
	return cmd
}

func (o *operator) protect(ctx context.Context, name string, undo bool) error {
	if err := o.connect(ctx); err != nil {
		return err
	}
	nodes, err := o.list(ctx, kindNode)
	if err != nil {
		return err
	}
	if err := checkNamed(nodes, "node", name); err != nil {
		return err
	}
	if undo {
		if err := o.annotate(ctx, kindNode, name, map[string]any{v1.DoNotDisruptAnnotationKey: nil}); err != nil {
			return err
		}
		o.say("Node %s may be removed again.", name)
		return nil
	}
	if err := o.annotate(ctx, kindNode, name, map[string]any{v1.DoNotDisruptAnnotationKey: "true"}); err != nil {
		return err
	}
	o.say("Node %s is not removed voluntarily.\nUndo: %s", name, o.streams.Offered("nap protect "+name+" --undo"))
	return nil
}

func newRetire(s command.Streams, now func() time.Time) *cobra.Command {
	o := &operator{streams: s, now: now}
	undo := false
	cmd := &cobra.Command{
		Use:   "retire NODE",
		Short: "Have a node replaced, within the budgets of its NodePool and of its pods",
		Long: `Ask the controller to replace a node as if it had drifted: a replacement is
bought first where its pods need one, the disruption budgets of its NodePool and
the PodDisruptionBudgets hold, and do-not-disrupt holds. The name is the Node's
or the NodeClaim's. --undo takes it back, unless the node is being removed
already.`,
		Example: `  nap retire aks-general-7xk2p
  nap retire aks-general-7xk2p --undo`,
		Args: one("the name of a node", "aks-general-7xk2p"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.retire(cmd.Context(), args[0], undo) },

		ValidArgsFunction: o.names(kindNode, 1),
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "do not replace the node after all")
	return cmd
}

func (o *operator) retire(ctx context.Context, name string, undo bool) error {
	if err := o.connect(ctx); err != nil {
		return err
	}
	if err := o.needsEngine("replaces no single node", "delete the NodeClaim, or drain the node"); err != nil {
		return err
	}
	claims, err := o.list(ctx, kindNodeClaim)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(claims, func(c unstructured.Unstructured) bool {
		node, _, err := unstructured.NestedString(c.Object, "status", "nodeName")
		return c.GetName() == name || err == nil && node == name
	})
	if i < 0 {
		nodes, err := o.list(ctx, kindNode)
		if err != nil {
			return err
		}
		if err := checkNamed(nodes, "node", name); err != nil {
			return err
		}
		return fmt.Errorf("node %s has no NodeClaim, so nap did not buy it and cannot replace it: use kubectl drain %s", name, name)
	}
	claim := claims[i].GetName()
	if undo {
		if err := o.annotate(ctx, kindNodeClaim, claim, map[string]any{annotationRetire: nil}); err != nil {
			return err
		}
		o.say("Node %s is not replaced, unless it is going already: %s", name, o.streams.Offered("nap explain node "+name))
		return nil
	}
	if err := o.annotate(ctx, kindNodeClaim, claim, map[string]any{annotationRetire: o.now().UTC().Format(time.RFC3339)}); err != nil {
		return err
	}
	o.say("Node %s is replaced when budgets allow it.\nSee: %s\nUndo: %s", name,
		o.streams.Offered("nap explain node "+name), o.streams.Offered("nap retire "+name+" --undo"))
	return nil
}

func newRetry(s command.Streams, now func() time.Time) *cobra.Command {
	o := &operator{streams: s, now: now}
	all := false
	cmd := &cobra.Command{
		Use:   "retry SIZE",
		Short: "Ask Azure again for a VM size that it has refused",
		Long: `Let the controller forget what Azure has refused of a VM size and its family,
read the quota again, and ask for it when pods need it: after a quota was
raised, for instance. --all forgets every refusal.`,
		Example: `  nap retry Standard_D4s_v5
  nap retry --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return fmt.Errorf("got --all and %q, give one of them", args[0])
			}
			if all {
				return nil
			}
			return one("the name of a VM size, or --all", "Standard_D4s_v5")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return o.retry(cmd.Context(), "*", []string{"*"})
			}
			return o.retrySize(cmd.Context(), args[0])
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "forget every refusal")
	return cmd
}

// retrySize retries a size, which may lack the prefix of Azure's, and its family.
func (o *operator) retrySize(ctx context.Context, name string) error {
	size, family, err := offline.SizeAndFamily(name)
	if err != nil {
		return err
	}
	return o.retry(ctx, size, []string{size, family})
}

func (o *operator) retry(ctx context.Context, what string, names []string) error {
	if err := o.connect(ctx); err != nil {
		return err
	}
	if o.told.document == nil {
		return errors.New("refusals are remembered by the controller, and " + o.told.why)
	}
	counted := refusalsOf(o.told, names, o.now)
	if err := o.annotate(ctx, kindSnapshot, snapshotName, map[string]any{annotationRetry: strings.Join(names, ",")}); err != nil {
		return err
	}
	if what == "*" {
		what = "all sizes"
	}
	o.say("%s of %s forgotten within five seconds; the quota is read again.", counted, what)
	return nil
}

// refusalsOf counts what the controller is about to forget of sizes and families, or of all
// (*). Where another version of nap wrote the refusals in a form that this one cannot read, they
// are forgotten all the same, and are not counted.
func refusalsOf(t *told, names []string, now func() time.Time) string {
	remembered, err := t.refusals(now)
	if err != nil {
		return "Refusals"
	}
	refusals := 0
	for _, name := range names {
		refusals += remembered.Forget(name)
	}
	return plural(refusals, "refusal")
}
