package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
)

// undo removes what was made, the last first.
func (i *installation) undo(ctx context.Context) error {
	if err := i.checkUndo(ctx); err != nil {
		return err
	}
	if err := i.refuseWithMachines(ctx); err != nil {
		return err
	}
	if err := i.uninstallReleases(ctx); err != nil {
		return err
	}
	if err := i.freeClasses(ctx); err != nil {
		return err
	}
	steps := i.plan.Steps()
	// The identity is looked at first: the others are found by it.
	there := make([]bool, len(steps))
	for n, step := range steps {
		var err error
		if there[n], err = step.There(ctx); err != nil {
			return fmt.Errorf("look at %s: %w", step.What, brief(err))
		}
	}
	for n, step := range slices.Backward(steps) {
		switch {
		case step.Remove == nil && there[n]:
			i.op.say("%s: stays; az aks nodepool delete removes it", step.What)
			continue
		case step.Remove == nil:
			continue
		case i.op.dryRun:
			i.op.wouldRemove(step.What, step.Undo)
			continue
		}
		if err := step.Remove(ctx); err != nil {
			return fmt.Errorf("remove %s: %w; the next run goes on from here", step.What, brief(err))
		}
		if there[n] {
			i.op.say("%s: removed", step.What)
		}
	}
	i.op.say("The custom resource definitions stay, and with them NodePools and AKSNodeClasses: " +
		"docs/install.md#remove-it says how to remove them.")
	return nil
}

// refuseWithMachines refuses to remove nap while it has machines, which would be left
// behind.
func (i *installation) refuseWithMachines(ctx context.Context) error {
	var err error
	if i.op.kube, err = client.New(i.rest, client.Options{}); err != nil {
		return err
	}
	claims, err := i.leftOf(ctx, kindNodeClaim)
	if err != nil {
		return err
	}
	if n := len(claims); n > 0 {
		return first("nap has %d machines, which would be left behind, %s first; nothing was removed. Run: nap disable --wait",
			n, claims[0].GetName())
	}
	return nil
}

// leftOf are the objects of a kind, none where the cluster does not know it.
func (i *installation) leftOf(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := i.op.kube.List(ctx, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// uninstallReleases removes the releases; definitions stay, as their chart says.
func (i *installation) uninstallReleases(ctx context.Context) error {
	installer, err := helmrelease.New(i.rest, i.flags.namespace, i.op.now)
	if err != nil {
		return err
	}
	for _, name := range []string{releaseName, releaseDefinitions} {
		if i.op.dryRun {
			last, err := installer.Current(ctx, name)
			if err != nil {
				return err
			}
			if last != nil {
				i.op.wouldRemove("release "+name, uninstall(name, i.flags.namespace))
			}
			continue
		}
		there, err := installer.Uninstall(ctx, name)
		if err != nil {
			return fmt.Errorf("release %s: %w; the next run goes on from here", name, err)
		}
		if there {
			i.op.say("release %s: removed", name)
		}
	}
	return nil
}

// freeClasses takes nap's finalizer off the AKSNodeClasses: without nap it would stay, and neither
// they nor their definition could ever be deleted.
func (i *installation) freeClasses(ctx context.Context) error {
	classes, err := i.leftOf(ctx, v1beta1.GroupVersion().WithKind("AKSNodeClass"))
	if err != nil {
		return err
	}
	classes = slices.DeleteFunc(classes, func(c unstructured.Unstructured) bool {
		return !controllerutil.ContainsFinalizer(&c, v1beta1.TerminationFinalizer)
	})
	if len(classes) == 0 {
		return nil
	}
	if !i.op.dryRun {
		if err := i.awaitEnd(ctx); err != nil {
			return err
		}
	}
	claims, err := i.leftOf(ctx, kindNodeClaim)
	if err != nil {
		return err
	}
	if n := len(claims); n > 0 {
		return first("nap has bought %d machines while it was removed, %s first; identity and roles stay. "+
			"Run nap enable again, and nap disable --wait before this", n, claims[0].GetName())
	}
	for c := range classes {
		name, before := classes[c].GetName(), classes[c].DeepCopy()
		controllerutil.RemoveFinalizer(&classes[c], v1beta1.TerminationFinalizer)
		if i.op.dryRun {
			left, err := json.Marshal(classes[c].GetFinalizers())
			if err != nil {
				return err
			}
			i.op.wouldRemove("the finalizer of AKSNodeClass "+name,
				fmt.Sprintf(`kubectl patch aksnodeclass %s --type merge --patch '{"metadata":{"finalizers":%s}}'`, name, left))
			continue
		}
		// A merge patch replaces the whole list, so it must not be made on an old one.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := i.op.kube.Patch(ctx, &classes[c], patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take the finalizer off AKSNodeClass %s: %w; the next run goes on from here", name, err)
		}
		i.op.say("finalizer of AKSNodeClass %s: removed", name)
	}
	return nil
}

// awaitEnd waits until no pod of nap is left, which would put the finalizers on again.
func (i *installation) awaitEnd(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(i.rest)
	if err != nil {
		return err
	}
	began := i.op.now()
	for {
		ofRelease := metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + releaseName}
		pods, err := kube.CoreV1().Pods(i.flags.namespace).List(ctx, ofRelease)
		switch {
		case err != nil:
			return fmt.Errorf("list the pods in namespace %s: %w", i.flags.namespace, err)
		case len(pods.Items) == 0:
			return nil
		case i.op.now().Sub(began) >= i.flags.timeout:
			return &command.ExitError{Code: exitNotReady, Err: fmt.Errorf(
				"pod %s in namespace %s has not ended after %s; identity and roles stay. Run this again when it has",
				pods.Items[0].Name, i.flags.namespace, i.flags.timeout)}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyEvery):
		}
	}
}
