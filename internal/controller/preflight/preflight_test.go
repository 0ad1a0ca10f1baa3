package preflight

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
)

func TestRunNamesMissingPartAndRemedy(t *testing.T) {
	claims := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	pools := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	wants := Wants{
		Resources: []schema.GroupVersionResource{pools, claims},
		Permissions: []rbac.Permission{
			{Verb: "create", Group: "karpenter.sh", Resource: "nodeclaims"},
			{Verb: "create", Resource: "pods", Subresource: "eviction"},
			{Verb: "list", Resource: "nodes"},
		},
		InstallCRDs:  "kubectl apply -f crds/",
		InstallRoles: "kubectl apply -f roles.yaml",
	}
	for _, c := range []struct {
		name   string
		serve  []string
		denied string
		down   error
		want   string
	}{
		{name: "everything is there", serve: []string{"nodepools", "nodeclaims"}},
		{
			name: "nobody listens", down: &url.Error{
				Op: "Get", URL: "https://x/version", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")},
			},
			want: "cannot reach the API server https://127.0.0.1:1: dial: connection refused: check that it runs, or choose " +
				"another with --kubeconfig or --context",
		},
		{
			name: "a resource is not served", serve: []string{"nodepools"},
			want: "the cluster lacks the custom resource definitions nodeclaims.karpenter.sh (v1): install them with kubectl apply -f crds/",
		},
		{
			name: "a whole group is not served",
			want: "the cluster lacks the custom resource definitions nodepools.karpenter.sh (v1), nodeclaims.karpenter.sh " +
				"(v1): install them with kubectl apply -f crds/",
		},
		{
			name: "a verb is not granted", serve: []string{"nodepools", "nodeclaims"}, denied: "create",
			want: "the credentials lack 2 of 3 permissions: create nodeclaims.karpenter.sh, create pods/eviction: grant them " +
				"with kubectl apply -f roles.yaml",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			kube := fake.NewClientset()
			if len(c.serve) > 0 {
				list := &metav1.APIResourceList{GroupVersion: "karpenter.sh/v1"}
				for _, r := range c.serve {
					list.APIResources = append(list.APIResources, metav1.APIResource{Name: r})
				}
				kube.Resources = append(kube.Resources, list)
			}
			kube.PrependReactor("get", "version", func(k8stesting.Action) (bool, runtime.Object, error) {
				return c.down != nil, nil, c.down
			})
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
				r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				r.Status.Allowed = r.Spec.ResourceAttributes.Verb != c.denied
				return true, r, nil
			})
			err := Run(context.Background(), Cluster{Client: kube, Host: "https://127.0.0.1:1"}, wants)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRunNamesSettingThatNeedsNewerKubernetes(t *testing.T) {
	wants := Wants{APIs: []API{{
		GroupVersion: schema.GroupVersion{Group: "resource.k8s.io", Version: "v1"}, Wanted: "--ignore-dra-requests=false", Since: "Kubernetes 1.34",
	}}}
	kube := fake.NewClientset()
	err := Run(t.Context(), Cluster{Client: kube}, wants)
	const want = "--ignore-dra-requests=false: the cluster does not serve resource.k8s.io/v1, which comes with Kubernetes 1.34: " +
		"upgrade it, or leave the setting out"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	kube.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
	if err := Run(t.Context(), Cluster{Client: kube}, wants); err != nil {
		t.Errorf("where it is served: %v", err)
	}
}

func TestRunAsksAgainWhileTheClusterIsSilent(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://x/version", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, c := range map[string]struct {
		patience time.Duration
		// answers is the attempt from which on the cluster answers; 0 for never.
		answers, attempts int
		took              time.Duration
		wants             Wants
		fails             bool
	}{
		"it answers after a while":     {time.Minute, 4, 4, 15 * time.Second, Wants{}, false},
		"it never answers":             {time.Minute, 0, 13, time.Minute, Wants{}, true},
		"without patience":             {0, 0, 1, 0, Wants{}, true},
		"what is missing is told once": {time.Minute, 1, 1, 0, Wants{Resources: []schema.GroupVersionResource{{Group: "g", Version: "v", Resource: "r"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube, attempts := fake.NewClientset(), 0
				kube.PrependReactor("get", "version", func(k8stesting.Action) (bool, runtime.Object, error) {
					attempts++
					silent := c.answers == 0 || attempts < c.answers
					return silent, nil, refused
				})
				begun := time.Now()
				err := Run(t.Context(), Cluster{Client: kube, Patience: c.patience, Clock: clock.RealClock{}}, c.wants)
				if (err != nil) != c.fails || attempts != c.attempts || time.Since(begun) != c.took {
					t.Errorf("%v after %d attempts and %s; want %d and %s", err, attempts, time.Since(begun), c.attempts, c.took)
				}
			})
		})
	}
}
