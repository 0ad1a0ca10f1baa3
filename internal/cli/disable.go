package cli

import (
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// disableTaint is the key of the taint by which nodes of a NodePool are left: NodeClaims
// drift from a template that has it, and no replacement may be bought.
const disableTaint = "karpenter.azure.com/disable"

// askModeEvery is how often --wait looks.
const askModeEvery = 2 * time.Second

// disabling is "nap disable".
type disabling struct {
	operator
	plan    planCommand
	wait    bool
	timeout time.Duration
}

func newDisable(s command.Streams, now func() time.Time) *cobra.Command {
	d := &disabling{
		operator: operator{streams: s, now: now},
		plan: planCommand{
			streams: s, now: now, engine: engineNap, rules: planRules{preferences: "Respect", minValues: "Strict"}, budget: 100 * time.Millisecond,
		},
	}
	cmd := &cobra.Command{
		Use:   "disable",
		Short: "Switch nap off without losing a pod: close NodePools, drain nodes, mode Manual",
		Long: `Switch nap off in the five steps that AKS's documents have:

  1. No NodePool may buy: spec.limits.cpu becomes 0, or spec.replicas where it
     is static.
  2. Each gets the taint karpenter.azure.com/disable:NoSchedule, so that nodes
     are drained where their pods fit on other nodes, within the disruption
     budgets of the NodePools and the PodDisruptionBudgets.
  3. It says which fixed machines are missing for the pods, planned with the
     prices of the region, and the command that adds them. You run it.
  4. With --wait it waits until no node of nap is left. Without, run it again.
  5. It sets spec.mode of NodeAutoProvisioning default to Manual.

What it finds done it leaves as it is. Pods that nothing may evict are named,
and nothing is changed before that is mended. nap enable undoes all of it.

Exit code 0: done. 2: blocked, or nodes are left. 1: an error.`,
		Example: `  nap disable --dry-run
  nap disable --dry-run -o json
  nap disable --wait
  nap enable`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.checkOutput(); err != nil {
				return err
			}
			if d.timeout <= 0 {
				return fmt.Errorf("--timeout: got %s, must be more than 0s", d.timeout)
			}
			return d.run(cmd.Context())
		},
	}
	d.add(cmd)
	d.addOutput(cmd)
	cmd.Flags().BoolVar(&d.wait, "wait", false, "wait until no node of nap is left, and switch the mode then")
	cmd.Flags().DurationVar(&d.timeout, "timeout", time.Hour, "how long --wait waits")
	return cmd
}

func (d *disabling) run(ctx context.Context) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	mode, err := d.mode(ctx)
	if err != nil {
		return err
	}
	if mode.Spec.Mode == v1alpha1.ModeManual && mode.Status.DisableBlockedBy == "" {
		if d.forPrograms() {
			return d.tellPrograms()
		}
		_, err := fmt.Fprintln(d.streams.Out, "The mode is Manual, and no node of nap is left: there is nothing to do.")
		return err
	}
	d.plan.input.cluster = d.cluster
	read, err := d.plan.input.read(ctx, d.streams.In)
	if err != nil {
		return err
	}
	if stuck := append(frozenPools(read.pools, d.now()), immovable(read.objects.List())...); len(stuck) > 0 {
		return &command.ExitError{Code: 2, Err: fmt.Errorf("nothing was changed, since nodes could not be left:\n  %s",
			strings.Join(stuck, "\n  "))}
	}
	missing, err := d.plan.missingCapacity(ctx, read)
	if err != nil {
		return err
	}
	if err := d.closePools(ctx); err != nil {
		return err
	}
	if d.forPrograms() {
		d.would.Missing = missing.document()
	} else if err := missing.write(&d.streams); err != nil {
		return err
	}
	if !d.dryRun {
		return d.finish(ctx)
	}
	if blocked := mode.Status.DisableBlockedBy; d.askServer && blocked != "" {
		sayNote(d.streams.Err, "not checked by the API server: mode Manual, which it refuses until steps 1 to 4 are done (%s)", blocked)
		d.askServer = false
	}
	if err := d.switchMode(ctx, v1alpha1.ModeManual); err != nil {
		return err
	}
	return d.tellPrograms()
}

// mode reads the object by which nap is switched.
func (o *operator) mode(ctx context.Context) (*v1alpha1.NodeAutoProvisioning, error) {
	items, err := o.list(ctx, kindMode)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errors.New("the cluster has no NodeAutoProvisioning: it is made by a controller that runs " +
			"(kubectl --namespace nap-system get deployment,pods)")
	}
	mode := &v1alpha1.NodeAutoProvisioning{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(items[0].Object, mode); err != nil {
		return nil, fmt.Errorf("read NodeAutoProvisioning %s: %w", items[0].GetName(), err)
	}
	return mode, nil
}

// nodePools are the NodePools of the cluster that nap manages, by name: those of another
// provisioner are not nap's to close.
func (o *operator) nodePools(ctx context.Context) ([]v1.NodePool, error) {
	items, err := o.list(ctx, kindNodePool)
	if err != nil {
		return nil, err
	}
	var out []v1.NodePool
	for i := range items {
		pool := v1.NodePool{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, &pool); err != nil {
			return nil, fmt.Errorf("read NodePool %s: %w", items[i].GetName(), err)
		}
		if kube.CheckManaged(&pool) == nil {
			out = append(out, pool)
		}
	}
	slices.SortFunc(out, func(a, b v1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// before is what a NodePool had before it was closed.
type before struct {
	// CPU is the limit of CPU, nil where there was none; Replicas are those of a static
	// NodePool.
	CPU      *string `json:"cpu,omitempty"`
	Replicas *int64  `json:"replicas,omitempty"`
}

// closePools does steps 1 and 2: first no NodePool may buy, then all are left.
func (d *disabling) closePools(ctx context.Context) error {
	pools, err := d.nodePools(ctx)
	if err != nil {
		return err
	}
	closed := 0
	for i := range pools {
		p := &pools[i]
		if _, is := p.Annotations[v1beta1.AnnotationBeforeDisable]; is && closedAlready(p) {
			continue
		}
		change, err := closing(p)
		if err != nil {
			return err
		}
		if err := d.write(ctx, kindNodePool, p.Name, change); err != nil {
			return err
		}
		closed++
	}
	tainted := 0
	for i := range pools {
		p := &pools[i]
		taints := p.Spec.Template.Spec.Taints
		if slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == disableTaint }) {
			continue
		}
		taints = append(slices.Clone(taints), corev1.Taint{Key: disableTaint, Effect: corev1.TaintEffectNoSchedule})
		if err := d.write(ctx, kindNodePool, p.Name, templateTaints(taints)); err != nil {
			return err
		}
		tainted++
	}
	d.say("Step 1: of %s %d closed now, so that none may buy.", plural(len(pools), "NodePool"), closed)
	d.say("Step 2: %d tainted now, so that their nodes are drained where their pods fit elsewhere.", tainted)
	return nil
}

// templateTaints is a patch that sets the taints of a NodePool.
func templateTaints(taints []corev1.Taint) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"taints": taints}}}}
}

// closedAlready reports whether a NodePool may buy nothing.
func closedAlready(p *v1.NodePool) bool {
	if p.Spec.Replicas != nil {
		return *p.Spec.Replicas == 0
	}
	limit, limited := p.Spec.Limits[corev1.ResourceCPU]
	return limited && limit.IsZero()
}

// closing is the patch by which a NodePool that may buy buys nothing, and remembers what it had:
// also one that has been opened by hand since an earlier time.
func closing(p *v1.NodePool) (map[string]any, error) {
	was, spec := before{Replicas: p.Spec.Replicas}, map[string]any{"replicas": 0}
	if p.Spec.Replicas == nil {
		if limit, limited := p.Spec.Limits[corev1.ResourceCPU]; limited {
			text := limit.String()
			was.CPU = &text
		}
		spec = map[string]any{"limits": map[string]any{"cpu": "0"}}
	}
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	annotations := map[string]any{v1beta1.AnnotationBeforeDisable: string(text)}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec}, nil
}

// finish does steps 4 and 5.
func (d *disabling) finish(ctx context.Context) error {
	deadline := d.now().Add(d.timeout)
	for said := ""; ; {
		claims, err := d.list(ctx, kindNodeClaim)
		if err != nil {
			return err
		}
		claims = slices.DeleteFunc(claims, ofOthers)
		if len(claims) == 0 {
			break
		}
		left := fmt.Sprintf("%s of nap left: %s", plural(len(claims), "node"), firstNames(claims))
		if !d.wait || d.now().After(deadline) {
			return &command.ExitError{Code: 2, Err: fmt.Errorf("%s. Their pods need other nodes, see step 3, or wait for their budgets: "+
				"nap explain node NODE says which. Then run it again, or with --wait", left)}
		}
		if left != said {
			fmt.Fprintf(d.streams.Out, "Step 4: %s.\n", left)
			said = left
		}
		if err := pause(ctx, askModeEvery); err != nil {
			return err
		}
	}
	d.say("Step 4: no node of nap is left.")
	return d.switchMode(ctx, v1alpha1.ModeManual)
}

// ofOthers reports whether a NodeClaim is of a node class that nap does not manage.
func ofOthers(claim unstructured.Unstructured) bool {
	ref, _, _ := unstructured.NestedStringMap(claim.Object, "spec", "nodeClassRef") // another form is no node class
	return kube.CheckClass(&v1.NodeClassReference{Group: ref["group"], Kind: ref["kind"]}) != nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// firstNames are the first names of objects.
func firstNames(items []unstructured.Unstructured) string {
	var names []string
	for i := range items {
		names = append(names, items[i].GetName())
	}
	slices.Sort(names)
	if more := len(names) - 5; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), more)
	}
	return strings.Join(names, ", ")
}

// statusAge is how long the controller may take to see that nothing blocks any more.
const statusAge = 15 * time.Second

// switchMode writes the mode. The API server refuses Manual by a status that is a second
// old, and is asked again for a while.
func (o *operator) switchMode(ctx context.Context, mode v1alpha1.Mode) error {
	for began := o.now(); ; {
		err := o.write(ctx, kindMode, v1alpha1.NodeAutoProvisioningName, map[string]any{"spec": map[string]any{"mode": mode}})
		if err == nil {
			break
		}
		if !apierrors.IsInvalid(err) {
			return err
		}
		if o.now().Sub(began) > statusAge {
			return &command.ExitError{Code: 2, Err: err}
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	if mode == v1alpha1.ModeManual {
		o.say("Step 5: the mode is Manual. Undo: nap enable")
		return nil
	}
	o.say("The mode is Auto.")
	return nil
}

// objectsOf are the objects of a type.
func objectsOf[T client.Object](objects []client.Object) []T {
	var out []T
	for _, o := range objects {
		if o, is := o.(T); is {
			out = append(out, o)
		}
	}
	return out
}
