package cli

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
)

// elsewhere is another namespace in which nap is already; empty where there is none. nap is
// where its release is, or a Deployment with the ServiceAccount that may sign in as its identity.
func (i *installation) elsewhere(ctx context.Context, installer *helmrelease.Installer) (string, error) {
	subject, err := i.plan.TrustedSubject(ctx)
	if err != nil {
		return "", fmt.Errorf("look at the federated credential %s: %w", setup.CredentialName, brief(err))
	}
	namespace, account := setup.ParseSubject(subject)
	here, err := installer.Current(ctx, releaseName)
	if err != nil || here != nil && namespace == i.flags.namespace {
		return "", err
	}
	found, err := installer.Elsewhere(ctx, releaseName)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if namespace == "" || namespace == i.flags.namespace {
		return "", nil
	}
	kube, err := kubernetes.NewForConfig(i.rest)
	if err != nil {
		return "", err
	}
	deployments, err := kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the Deployments in namespace %s, whose ServiceAccount %s signs in as nap: %w", namespace, account, err)
	}
	for d := range deployments.Items {
		if deployments.Items[d].Spec.Template.Spec.ServiceAccountName == account {
			return namespace, nil
		}
	}
	return "", nil
}

// place is what installs into the namespace that is asked for, with another one in which nap is
// already, empty where there is none.
func (i *installation) place(ctx context.Context) (installer *helmrelease.Installer, other string, err error) {
	if installer, err = helmrelease.New(i.rest, i.flags.namespace, i.op.now); err != nil {
		return nil, "", err
	}
	other, err = i.elsewhere(ctx, installer)
	return installer, other, err
}

// checkReleases refuses what keeps the releases from being installed while nothing is made yet: a
// nap that runs in another namespace would lose its sign-in to Azure to this one.
func (i *installation) checkReleases(ctx context.Context) error {
	installer, other, err := i.place(ctx)
	if err != nil {
		return err
	}
	if other != "" {
		return first("nap is in namespace %s already, and --namespace is %s; nothing was made. Run this again with --namespace %[1]s, "+
			"or remove that one before, by nap enable --undo --namespace %[1]s", other, i.flags.namespace)
	}
	return installable(ctx, installer, i.releases())
}

// checkUndo refuses to remove the identity of a nap that is in another namespace, and says so where
// there is no nap to be removed.
func (i *installation) checkUndo(ctx context.Context) error {
	installer, other, err := i.place(ctx)
	if err != nil {
		return err
	}
	if other != "" {
		return first("nap is in namespace %s, and --namespace is %s; nothing was removed. Run this again with --namespace %[1]s",
			other, i.flags.namespace)
	}
	here, err := installer.Current(ctx, releaseName)
	if err == nil && here == nil && !i.op.forPrograms() {
		fmt.Fprintf(i.op.streams.Out, "release %s: there is none in any namespace; what is left in Azure is looked for\n", releaseName)
	}
	return err
}

// installable refuses releases that cannot be installed as the cluster is.
func installable(ctx context.Context, installer *helmrelease.Installer, releases []charts.Release) error {
	for _, r := range releases {
		err := installer.Check(ctx, r)
		if err == nil {
			continue
		}
		err = fmt.Errorf("release %s: %w", r.Name, err)
		refused, is := errors.AsType[*helmrelease.RefusedError](err)
		if !is {
			return err
		}
		if refused.Namespace != "" {
			err = fmt.Errorf("%w\nOr install it where it was before: --namespace %s", err, refused.Namespace)
		}
		return &command.ExitError{Code: exitFirst, Err: err}
	}
	return nil
}
