package cloudprovider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
)

// server is the control plane's version.
type server struct{ version *string }

func (s server) ServerVersion() (*version.Info, error) {
	if emulated, is := strings.CutPrefix(*s.version, "v1.37.1 as 1."); is {
		return &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: emulated}, nil
	}
	return &version.Info{GitVersion: *s.version}, nil
}

// heard collects events, which several launches may publish at the same time.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) Publish(list ...events.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range list {
		h.lines = append(h.lines, e.Reason+": "+e.Message)
	}
}

// all are the events so far, in their order.
func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// forget drops the events so far.
func (h *heard) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = nil
}

type world struct {
	// prices is the path of a prices file, or empty.
	prices string
	*armtest.Env
	port   *Port
	kube   client.Client
	class  *v1beta1.AKSNodeClass
	config config.Config
	server string // the control plane's version
	events heard
	stop   func()
}

// scheme is the one that Karpenter's types register themselves in.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	if err := errors.Join(v1beta1.AddToScheme(clientgoscheme.Scheme), v1alpha1.AddToScheme(clientgoscheme.Scheme)); err != nil {
		t.Fatal(err)
	}
	return clientgoscheme.Scheme
}

// inWorld runs a test with a port on a simulated Azure and a ready class.
func inWorld(t *testing.T, test func(t *testing.T, w *world), options ...func(*armsim.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: armtest.New(t, append([]func(*armsim.Config){fewSizes}, options...)...), server: "v1.35.1-eks-1"}
		w.config = config.Config{
			ClusterName: w.ClusterName, ClusterEndpoint: "https://cluster.test:443", ClusterCA: armtest.Certificate(),
			BootstrapToken: jointoken.New("abcdef.0123456789abcdef"), KubeletIdentityClientID: "0b1f6471-0000-4000-8000-0000000000ce", DNSServiceIP: "10.0.0.10",
			SubscriptionID: w.SubscriptionID, Location: w.Region, NodeResourceGroup: w.NodeResourceGroup, VNETSubnetID: w.SubnetID,
			NetworkPlugin: "azure", NetworkPluginMode: "overlay", VMMemoryOverhead: 0.075, LaunchSettle: 10 * time.Second,
			Cloud: config.Cloud{TenantID: w.TenantID, Environment: &config.Environment{
				ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"),
			}},
		}
		size, family := int32(128), "Ubuntu"
		w.class = &v1beta1.AKSNodeClass{
			ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1},
			Spec:       v1beta1.AKSNodeClassSpec{OSDiskSizeGB: &size, ImageFamily: &family},
		}
		w.kube = fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(w.class).WithObjects(w.class).Build()
		w.start(t)
		w.resolve(t)
		test(t, w)
		w.stop()
	})
}

// fewSizes is for tests of something else: every provider that starts reads all sizes.
func fewSizes(c *armsim.Config) {
	c.Sizes = []string{"Standard_D2*_v5", "Standard_D4*_v5", "Standard_D8*_v5", "Standard_E4s_v5", "Standard_NC6s_v3"}
}

// start makes a port on the simulated Azure, as a new process would.
func (w *world) start(t *testing.T) {
	t.Helper()
	provider, err := azure.New(t.Context(), w.config, azure.Deps{Credential: w.Credential, Transport: w.HTTP, PricesFile: w.prices})
	if err != nil {
		t.Fatal(err)
	}
	w.port = New(w.kube, server{&w.server}, provider)
	w.port.Record(&w.events)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := provider.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	w.stop = func() { cancel(); <-done }
}

// restart makes the next process one with another configuration.
func (w *world) restart(t *testing.T, change func(*config.Config)) {
	t.Helper()
	w.stop()
	change(&w.config)
	w.start(t)
}

// aksMachines configures machines of the AKS machine API.
func (w *world) aksMachines(c *config.Config) {
	c.ProvisionMode, c.ResourceGroup, c.MachinesPool = config.ModeAKSMachines, w.ResourceGroup, "machines"
}

// resolve fills the class's status as the status controller does.
func (w *world) resolve(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if err := w.kube.Get(ctx, types.NamespacedName{Name: w.class.Name}, w.class); err != nil {
		t.Fatal(err)
	}
	controller := nodeclass.NewStatus(w.kube, clock.RealClock{}, w.port.Classes)
	if _, err := controller.Reconcile(ctx, w.class); err != nil {
		t.Fatal(err)
	}
	hash, err := w.class.Hash()
	if err != nil {
		t.Fatal(err)
	}
	w.class.Annotations = map[string]string{v1beta1.AnnotationHash: hash, v1beta1.AnnotationHashVersion: v1beta1.HashVersion}
	if err := w.kube.Update(ctx, w.class); err != nil {
		t.Fatal(err)
	}
}

func ref() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
}

func pool() *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	p.Spec.Template.Spec.NodeClassRef = ref()
	return p
}

func need(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func claim(name string, requirements ...karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: "general", "team": "blue"}},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: ref(), Requirements: requirements,
			Resources: karpv1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("2Gi"),
			}},
		},
	}
}
