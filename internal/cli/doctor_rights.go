package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/kube/clusterfacts"
)

// accessReview asks the API server whether an account may do something.
type accessReview func(ctx context.Context, of *authorizationv1.SubjectAccessReview) (allowed bool, err error)

// rightsIn asks the cluster that a configuration reaches. The person who asks needs the
// right to create SubjectAccessReviews.
func rightsIn(config *rest.Config) (clusterfacts.Rights, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200 // about a hundred small questions at once
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server %s: %w", config.Host, err)
	}
	return rightsBy(func(ctx context.Context, of *authorizationv1.SubjectAccessReview) (bool, error) {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, of, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}), nil
}

// rightsBy compares what the account of a Deployment may do with the roles of this nap.
func rightsBy(ask accessReview) clusterfacts.Rights {
	const atOnce = 16
	return func(ctx context.Context, of *appsv1.Deployment) ([]string, int, error) {
		wants, err := permissionsOf(of)
		if err != nil {
			return nil, 0, err
		}
		account := cmp.Or(of.Spec.Template.Spec.ServiceAccountName, "default")
		lacks := make([]bool, len(wants))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for i, p := range wants {
			group.Go(func() error {
				allowed, err := ask(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:   "system:serviceaccount:" + of.Namespace + ":" + account,
					Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + of.Namespace, "system:authenticated"},
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: p.Namespace, Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource, Name: p.Name,
					},
				}})
				lacks[i] = !allowed
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, 0, fmt.Errorf("ask what ServiceAccount %s/%s may do: %w", of.Namespace, account, err)
		}
		var denied []string
		for i, p := range wants {
			if lacks[i] {
				denied = append(denied, p.String())
			}
		}
		return denied, len(wants), nil
	}
}

// permissionsOf lists what a Deployment of the controller needs, as its environment says; none
// for a shadow. Where a part of the environment is not in the Deployment, these are the
// permissions that every controller needs.
func permissionsOf(d *appsv1.Deployment) ([]rbac.Permission, error) {
	container := &d.Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	if env["SHADOW"] == "true" {
		return nil, nil
	}
	namespace := cmp.Or(env["LEADER_ELECTION_NAMESPACE"], d.Namespace)
	if len(container.EnvFrom) > 0 {
		return rbac.Required(namespace)
	}
	var features []rbac.Feature
	for feature, on := range map[rbac.Feature]bool{
		rbac.LeaderElection:         env["DISABLE_LEADER_ELECTION"] != "true",
		rbac.SecureMetrics:          env["METRICS_SECURE"] == "true",
		rbac.BootstrapTokens:        env["BOOTSTRAP_TOKENS"] == string(bootstraptoken.Own),
		rbac.ClusterBootstrapTokens: env["BOOTSTRAP_TOKENS"] == string(bootstraptoken.Cluster),
		rbac.NodeOverlay:            gateOn(env, rbac.NodeOverlay),
		rbac.CapacityBuffer:         gateOn(env, rbac.CapacityBuffer),
		rbac.PodDeletionCost:        gateOn(env, rbac.PodDeletionCost),
	} {
		if on {
			features = append(features, feature)
		}
	}
	return rbac.Required(namespace, features...) // in the order of the roles
}

// gateOn reports whether a feature gate is on in an environment.
func gateOn(env map[string]string, gate rbac.Feature) bool {
	for _, part := range strings.Split(env["FEATURE_GATES"], ",") {
		if strings.TrimSpace(part) == string(gate)+"=true" {
			return true
		}
	}
	return false
}
