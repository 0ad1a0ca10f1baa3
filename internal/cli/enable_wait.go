package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// readyEvery is how often nap enable looks whether nap is ready.
const readyEvery = time.Second

// await waits until nap's Deployment is rolled out and nap has made its
// NodeAutoProvisioning.
func (i *installation) await(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(i.rest)
	if err != nil {
		return err
	}
	objects, err := client.New(i.rest, client.Options{})
	if err != nil {
		return err
	}
	began, said := i.op.now(), ""
	for {
		waits, err := i.waitsFor(ctx, kube, objects)
		switch {
		case err != nil:
			return err
		case waits == "":
			i.op.say("nap is ready, after %s", i.op.now().Sub(began).Round(100*time.Millisecond))
			return nil
		case i.op.now().Sub(began) >= i.flags.timeout:
			return &command.ExitError{Code: exitNotReady, Err: fmt.Errorf(
				"nap is not ready after %s: %s. All is made; run this again to wait longer, and look with: "+
					"kubectl --namespace %s describe pods; kubectl --namespace %s logs deployment/%s",
				i.flags.timeout, waits, i.flags.namespace, i.flags.namespace, i.deployment)}
		case waits != said:
			said = waits
			fmt.Fprintln(i.op.streams.Err, "waiting:", waits)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyEvery):
		}
	}
}

// waitsFor is what is not ready yet; empty where all is.
func (i *installation) waitsFor(ctx context.Context, kube kubernetes.Interface, objects client.Client) (string, error) {
	d, err := kube.AppsV1().Deployments(i.flags.namespace).Get(ctx, i.deployment, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read Deployment %s in namespace %s: %w", i.deployment, i.flags.namespace, err)
	}
	if why, err := i.scaledDown(ctx, kube, d); err != nil || why != "" {
		return why, err
	}
	if why := rolledOut(d); why != "" {
		return why + i.podTrouble(ctx, kube, metav1.FormatLabelSelector(d.Spec.Selector)), nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kindMode)
	err = objects.Get(ctx, client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, found)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return "nap has not made its NodeAutoProvisioning yet", nil
	case err != nil:
		return "", fmt.Errorf("read NodeAutoProvisioning %s: %w", v1alpha1.NodeAutoProvisioningName, err)
	}
	return "", nil
}

// podTrouble is what keeps a container from running, of the first pod that says so.
func (i *installation) podTrouble(ctx context.Context, kube kubernetes.Interface, selector string) string {
	pods, err := kube.CoreV1().Pods(i.flags.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	for p := range pods.Items {
		pod := &pods.Items[p]
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return fmt.Sprintf("; pod %s is not scheduled: %s", pod.Name, c.Message)
			}
		}
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
				return strings.TrimSuffix(fmt.Sprintf("; pod %s waits: %s: %s", pod.Name, w.Reason, w.Message), ": ")
			}
		}
	}
	return ""
}

// next undoes what nap disable has closed, and says what can be done now.
func (i *installation) next(ctx context.Context) error {
	if err := i.op.enable(ctx); err != nil {
		return err
	}
	i.op.say("\nNext:\n  kubectl get nodepools,napmode\n" +
		"  kubectl create deployment inflate --image=mcr.microsoft.com/oss/kubernetes/pause:3.9 --replicas=5\n  nap status\n" +
		"Upgrade by helm upgrade or by nap enable; switch off by nap disable.")
	return nil
}
