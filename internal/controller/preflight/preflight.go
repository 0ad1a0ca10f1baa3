// Package preflight finds out, before anything is started, whether a cluster can
// be worked with: it answers, it has the custom resources, and it grants the
// permissions. Every finding is one sentence that says what to do.
//
// Start with [Run].
package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
)

// Cluster is what Run asks.
type Cluster struct {
	Client kubernetes.Interface
	// Host is the API server's address, for messages.
	Host string
	// Patience is for how long a cluster that does not answer is asked again; 0 for once.
	// Clock measures it.
	Patience time.Duration
	Clock    clock.Clock
}

// askAgain is how long Run waits between two attempts at a cluster that does not answer.
const askAgain = 5 * time.Second

// silent is an error of a cluster that did not answer, which may pass.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// Wants is what Run makes sure of.
type Wants struct {
	Resources []schema.GroupVersionResource
	// APIs are those of Kubernetes that settings need.
	APIs        []API
	Permissions []rbac.Permission
	// InstallCRDs and InstallRoles say how to mend what is missing, as the end of
	// a sentence that begins with "install them with" and "grant them with".
	InstallCRDs, InstallRoles string
}

// API is an API of Kubernetes that not every cluster serves: Wanted is the setting that
// needs it, Since the version of Kubernetes with which it comes.
type API struct {
	GroupVersion  schema.GroupVersion
	Wanted, Since string
}

// reviewsAtOnce bounds the parallel access reviews.
const reviewsAtOnce = 16

// Run checks the cluster in the order in which one finding explains the next:
// reachable, custom resources, permissions. It returns the first kind of trouble
// with everything of that kind that is missing. A cluster that does not answer is asked
// again: an API server that restarts would otherwise cost minutes of a pod that
// Kubernetes restarts ever more slowly.
func Run(ctx context.Context, cluster Cluster, wants Wants) error {
	if cluster.Patience <= 0 {
		return look(ctx, cluster, wants)
	}
	for begun := cluster.Clock.Now(); ; {
		err := look(ctx, cluster, wants)
		if !errors.As(err, new(silent)) || cluster.Clock.Since(begun)+askAgain > cluster.Patience {
			return err
		}
		log.FromContext(ctx).Info("the cluster does not answer, trying again", "because", err.Error())
		select {
		case <-ctx.Done():
			return err
		case <-cluster.Clock.After(askAgain):
		}
	}
}

// look checks the cluster once.
func look(ctx context.Context, cluster Cluster, wants Wants) error {
	if _, err := cluster.Client.Discovery().ServerVersion(); err != nil {
		return unreachable(cluster.Host, err)
	}
	if err := resourcesExist(cluster, wants); err != nil {
		return err
	}
	if err := apisServed(cluster, wants); err != nil {
		return err
	}
	return permissionsGranted(ctx, cluster, wants)
}

func unreachable(host string, err error) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server %s does not accept the credentials of the kubeconfig: renew them, or choose "+
			"others with --kubeconfig or --context", host)
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		err = transport.Err
	}
	return silent{fmt.Errorf("cannot reach the API server %s: %w: check that it runs, or choose another with --kubeconfig or --context",
		host, err)}
}

func resourcesExist(cluster Cluster, wants Wants) error {
	served := map[schema.GroupVersion][]string{}
	var missing []string
	for _, want := range wants.Resources {
		gv := want.GroupVersion()
		if _, asked := served[gv]; !asked {
			list, err := cluster.Client.Discovery().ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return silent{fmt.Errorf("asking the API server %s for the resources of %s: %w", cluster.Host, gv, err)}
			}
			served[gv] = names(list)
		}
		if !slices.Contains(served[gv], want.Resource) {
			missing = append(missing, fmt.Sprintf("%s.%s (%s)", want.Resource, want.Group, want.Version))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the cluster lacks the custom resource definitions %s: install them with %s",
			strings.Join(missing, ", "), wants.InstallCRDs)
	}
	return nil
}

func apisServed(cluster Cluster, wants Wants) error {
	for _, api := range wants.APIs {
		_, err := cluster.Client.Discovery().ServerResourcesForGroupVersion(api.GroupVersion.String())
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%s: the cluster does not serve %s, which comes with %s: upgrade it, or leave the setting out",
				api.Wanted, api.GroupVersion, api.Since)
		case err != nil:
			return silent{fmt.Errorf("asking the API server %s for %s: %w", cluster.Host, api.GroupVersion, err)}
		}
	}
	return nil
}

func names(list *metav1.APIResourceList) []string {
	if list == nil {
		return nil
	}
	var out []string
	for _, r := range list.APIResources {
		out = append(out, r.Name)
	}
	return out
}

func permissionsGranted(ctx context.Context, cluster Cluster, wants Wants) error {
	denied := make([]bool, len(wants.Permissions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, p := range wants.Permissions {
		group.Go(func() error {
			allowed, err := review(ctx, cluster.Client, p)
			denied[i] = !allowed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return silent{fmt.Errorf("asking the API server %s for permissions: %w", cluster.Host, err)}
	}
	var missing []string
	for i, p := range wants.Permissions {
		if denied[i] {
			missing = append(missing, p.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the credentials lack %d of %d permissions: %s: grant them with %s",
			len(missing), len(wants.Permissions), strings.Join(missing, ", "), wants.InstallRoles)
	}
	return nil
}

func review(ctx context.Context, c kubernetes.Interface, p rbac.Permission) (bool, error) {
	answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: p.Namespace, Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource, Name: p.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
