package cloudprovider

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// knowing is a cluster that has the kinds of policies of one engine, and a policy
// of one kind.
type knowing struct {
	client.Reader
	group, policy string
	fail          error
}

func (k knowing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, custom := list.(*metav1.PartialObjectMetadataList)
	kind := list.GetObjectKind().GroupVersionKind()
	switch {
	case k.fail != nil:
		return k.fail
	case !custom:
		return k.Reader.List(ctx, list, options...)
	case kind.Group != k.group:
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	case kind.Kind == k.policy+"List":
		found.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "deny"}}}
	}
	return nil
}

func policy(namespace, name string) client.Object {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestPreferredLocalDNSEnabledByDefault(t *testing.T) {
	const on, off = v1beta1.LocalDNSStateEnabled, v1beta1.LocalDNSStateDisabled
	fips := func(c *v1beta1.AKSNodeClass) { c.Spec.FIPSMode = ptr(v1beta1.FIPSModeFIPS) }
	rows := []struct {
		name    string
		config  func(*config.Config)
		class   func(*v1beta1.AKSNodeClass)
		objects []client.Object
		policy  string // a kind of the engine's own
		want    v1beta1.LocalDNSState
	}{
		{name: "nothing in the way", want: on},
		{name: "the version before", class: func(c *v1beta1.AKSNodeClass) { c.Status.KubernetesVersion = ptr("1.98.9") }, want: off},
		{name: "no version yet", class: func(c *v1beta1.AKSNodeClass) { c.Status.KubernetesVersion = nil }, want: off},
		{name: "once enabled it stays", class: func(c *v1beta1.AKSNodeClass) {
			c.Status.KubernetesVersion, c.Status.LocalDNSState = ptr("1.35.1"), ptr(on)
		}, want: on},
		{name: "disabled by its author", class: func(c *v1beta1.AKSNodeClass) {
			c.Spec.LocalDNS.Mode, c.Status.LocalDNSState = v1beta1.LocalDNSModeDisabled, ptr(on)
		}, want: off},
		{name: "plain virtual machines", config: func(c *config.Config) { c.ProvisionMode = config.ModeVMs }, want: on},
		{
			name:   "a network of one's own",
			config: func(c *config.Config) { c.NetworkPlugin, c.NetworkPluginMode = config.PluginNone, "" }, want: off,
		},
		{name: "Ubuntu 20.04", class: fips, want: off},
		{name: "an image that nobody knows", class: func(c *v1beta1.AKSNodeClass) { c.Spec.ImageFamily = ptr("Other") }, want: off},
		{
			name: "another cache", objects: []client.Object{&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-local-dns"}}}, want: off,
		},
		{name: "a policy that AKS makes", objects: []client.Object{policy("kube-system", "konnectivity-agent")}, want: on},
		{name: "a policy beside the one that AKS makes", objects: []client.Object{policy("kube-system", "deny")}, want: off},
		{name: "a policy of the user", objects: []client.Object{policy("kube-system", "konnectivity-agent"), policy("web", "konnectivity-agent")}, want: off},
		{name: "a policy that nobody enforces", config: func(c *config.Config) { c.NetworkPolicy = "none" }, objects: []client.Object{policy("web", "deny")}, want: on},
		{name: "a policy of Cilium", policy: "CiliumNetworkPolicy", want: off},
		{name: "a policy of Cilium for the cluster", policy: "CiliumClusterwideNetworkPolicy", want: off},
		{name: "a policy of Calico", config: func(c *config.Config) { c.NetworkPolicy = "calico" }, policy: "GlobalNetworkPolicy", want: off},
		{name: "a policy of an engine that is not in use", config: func(c *config.Config) { c.NetworkPolicy = "calico" }, policy: "CiliumNetworkPolicy", want: on},
		{name: "Calico without policies", config: func(c *config.Config) { c.NetworkPolicy = "calico" }, want: on},
	}
	inWorld(t, func(t *testing.T, w *world) {
		for _, row := range rows {
			w.restart(t, func(c *config.Config) {
				w.aksMachines(c)
				c.NetworkPolicy, c.NetworkPlugin, c.NetworkPluginMode = "cilium", "azure", "overlay"
				if row.config != nil {
					row.config(c)
				}
			})
			group := map[string]string{"cilium": "cilium.io", "calico": "crd.projectcalico.org"}[w.config.NetworkPolicy]
			w.port.ReadDirectly(knowing{Reader: fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(row.objects...).Build(), group: group, policy: row.policy})
			class := w.class.DeepCopy()
			class.Spec.LocalDNS, class.Status.KubernetesVersion = &v1beta1.LocalDNS{Mode: v1beta1.LocalDNSModePreferred}, ptr(localDNSFrom)
			if row.class != nil {
				row.class(class)
			}
			if got, err := w.port.Classes.LocalDNS(t.Context(), class); err != nil || got != row.want {
				t.Errorf("%s: %s, %v, want %s", row.name, got, err, row.want)
			}
		}
	})
}

func TestPreferredLocalDNSWithReadErrorOrWithoutPermission(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { w.aksMachines(c); c.NetworkPolicy = "cilium" })
		class := w.class.DeepCopy()
		class.Spec.LocalDNS, class.Status.KubernetesVersion = &v1beta1.LocalDNS{Mode: v1beta1.LocalDNSModePreferred}, ptr(localDNSFrom)
		w.port.ReadDirectly(knowing{Reader: w.kube, fail: errors.New("timeout")})
		if state, err := w.port.Classes.LocalDNS(t.Context(), class); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("without an answer: %s, %v", state, err)
		}
		w.port.ReadDirectly(knowing{Reader: w.kube, fail: apierrors.NewForbidden(schema.GroupResource{Resource: "networkpolicies"}, "", errors.New("no"))})
		if state, err := w.port.Classes.LocalDNS(t.Context(), class); err != nil || state != v1beta1.LocalDNSStateDisabled {
			t.Errorf("without permission: %s, %v, want %s", state, err, v1beta1.LocalDNSStateDisabled)
		}
		if len(w.events.all()) != 1 || !strings.HasPrefix(w.events.all()[0], event.ReasonLocalDNSUnknown+": ") || !strings.Contains(w.events.all()[0], "networkpolicies") {
			t.Errorf("events %q", w.events.all())
		}
	})
}

// A cluster need not know the kinds of policies of its engine; that it does not answer is
// no answer.
func TestPoliciesOfKindsThatTheClusterDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"no such kind":  {&meta.NoKindMatchError{}, false},
		"no such group": {apierrors.NewNotFound(schema.GroupResource{}, ""), false},
		"no answer":     {errors.New("timeout"), true},
	} {
		var versions []string
		kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, custom := list.(*metav1.PartialObjectMetadataList); !custom {
					return inner.List(ctx, list, options...)
				}
				versions = append(versions, list.GetObjectKind().GroupVersionKind().GroupVersion().String())
				return c.answer
			},
		}).Build()
		for engine, version := range map[string]string{"cilium": "cilium.io/v2", "calico": "crd.projectcalico.org/v1"} {
			versions = nil
			if policed, err := (localDNS{direct: kube}).policed(t.Context(), engine); policed || (err != nil) != c.fails {
				t.Errorf("%s, %s: %t, %v", name, engine, policed, err)
			}
			if len(versions) == 0 || versions[0] != version {
				t.Errorf("%s was asked for policies of %v, want %s", engine, versions, version)
			}
		}
	}
}
