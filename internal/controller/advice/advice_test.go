package advice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// world is a loop in a region that sells two sizes.
type world struct {
	*Loop
	t      *testing.T
	said   []string
	limits map[string]int64
	gpus   bool // the sizes have them
	noGPU  bool // AKS does not manage them
	market uint64
	read   int // catalogues
}

func (w *world) Publish(evs ...events.Event) {
	for _, e := range evs {
		w.said = append(w.said, e.Type+" "+e.Reason+": "+e.Message)
	}
}

// Catalog implements fleet.Catalogs.
func (w *world) Catalog(context.Context, string) (*fleet.Catalog, error) {
	w.read++
	size := func(name string) model.InstanceType {
		labels := map[string]string{model.LabelInstanceType: name}
		if w.gpus {
			labels["karpenter.azure.com/sku-gpu-manufacturer"] = "nvidia"
		}
		return model.InstanceType{Name: name, Labels: labels, Offerings: []model.Offering{{
			Zone: "r-1", CapacityType: model.OnDemand, Labels: map[string]string{model.LabelCapacityType: "on-demand", model.LabelZone: "r-1"},
			Quotas: []model.QuotaUse{{Quota: "cores"}},
		}}}
	}
	return &fleet.Catalog{InstanceTypes: []model.InstanceType{size("A"), size("B")}}, nil
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, limits: map[string]int64{"cores": 100}}
	w.Loop = &Loop{
		Kube:     fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodePool{}).Build(),
		Recorder: w, Clock: clock.RealClock{}, Catalogs: w,
		Manages:      func(p *karpv1.NodePool) bool { return p.Spec.Template.Spec.NodeClassRef.Kind == "AKSNodeClass" },
		Excluded:     func(context.Context, *karpv1.NodePool) func(string) string { return func(string) string { return "" } },
		Subscription: func() poollint.Subscription { return poollint.Subscription{Limits: w.limits, NoManagedGPU: w.noGPU} },
		Market:       func() uint64 { return w.market },
	}
	return w
}

// pool is a NodePool with a limit, in vCPUs.
func pool(name string, cpu int64) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
	p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("720h")
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	return p
}

func (w *world) looks() {
	w.t.Helper()
	if err := w.look(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// condition is that of a NodePool as text; none where it has none.
func (w *world) condition(name string) string {
	w.t.Helper()
	got := &karpv1.NodePool{}
	if err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: name}, got); err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(got.Status.Conditions, func(c status.Condition) bool { return c.Type == Condition })
	if i < 0 {
		return "none"
	}
	c := got.Status.Conditions[i]
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// TestConditionSaysWhatIsUnwise: with an event for each finding, once, also after a restart,
// and without a word while there is none.
func TestConditionSaysWhatIsUnwise(t *testing.T) {
	p := pool("general", 500)
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: model.LabelInstanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{"A"}}}
	other := pool("another", 10)
	other.Spec.Template.Spec.NodeClassRef.Kind = "Other"
	w := newWorld(t, p, other)
	w.looks()
	const want = "False OneSize: OneSize: can buy size A alone: where Azure has none left, pods wait. " +
		"Name a family in place of the size, such as karpenter.azure.com/sku-family In [D]. " +
		"LimitAboveQuota: may buy 500 vCPUs, and the quota (cores) is 100. Lower spec.limits.cpu, or ask Azure for more quota."
	if got := w.condition("general"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if w.condition("another") != "none" || len(w.said) != 2 ||
		!strings.HasPrefix(w.said[0], "Warning OneSize: can buy size A alone") ||
		!strings.HasPrefix(w.said[1], "Warning LimitAboveQuota: may buy 500 vCPUs") {
		t.Errorf("events %q", w.said)
	}
	restarted := newWorld(t)
	restarted.Loop.Kube = w.Kube
	restarted.looks()
	if len(restarted.said) > 0 {
		t.Errorf("told again after a restart: %q", restarted.said)
	}
	w.said = nil
	w.limits, w.market = map[string]int64{"cores": 1000}, 1
	w.looks()
	if got := w.condition("general"); !strings.HasPrefix(got, "False OneSize") || strings.Contains(got, "Quota") || len(w.said) > 0 {
		t.Errorf("with more quota: %s, events %q", got, w.said)
	}
	if err := w.Kube.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Template.Spec.Requirements, p.Generation = nil, 2
	if err := w.Kube.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.looks()
	if got := w.condition("general"); got != "True ConfigurationSound: "+sound || !slices.Equal(w.said, []string{"Normal ConfigurationSound: " + sound}) {
		t.Errorf("mended: %s, events %q", got, w.said)
	}
}

// TestAnnotationsCountAsChange: a limit in dollars is one of the limits, and no part of the
// generation.
func TestAnnotationsCountAsChange(t *testing.T) {
	p := pool("general", 50)
	p.Spec.Limits = nil
	w := newWorld(t, p)
	w.looks()
	if got := w.condition("general"); !strings.HasPrefix(got, "False NoLimit") {
		t.Fatal(got)
	}
	if err := w.Kube.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	p.Annotations = map[string]string{v1beta1.AnnotationMaxHourlyCost: "5"}
	if err := w.Kube.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.looks()
	if got := w.condition("general"); !strings.HasPrefix(got, "True") {
		t.Error(got)
	}
}

// TestConditionNamesThePreviewFeatureOfManagedGPUs: when the feature is found to be missing,
// and not any more when it is registered.
func TestConditionNamesThePreviewFeatureOfManagedGPUs(t *testing.T) {
	managed := v1beta1.ManagementModeManaged
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.GPU = &v1beta1.GPU{Nvidia: &v1beta1.NvidiaGPU{ManagementMode: &managed}}
	w := newWorld(t, pool("general", 50), class)
	w.gpus = true
	w.looks()
	if got := w.condition("general"); got != "none" {
		t.Fatal(got)
	}
	w.noGPU = true
	w.looks()
	const want = "AKS refuses its GPU machines: the preview feature ManagedGPUExperiencePreview is not registered. " +
		"nap doctor has the commands; or set gpu.nvidia.managementMode of the AKSNodeClass to Unmanaged."
	if got := w.condition("general"); got != "False ManagedGPUNotRegistered: ManagedGPUNotRegistered: "+want ||
		!slices.Equal(w.said, []string{"Warning ManagedGPUNotRegistered: " + strings.Replace(want, ". ", "; ", 1)}) {
		t.Errorf("%s, events %q", got, w.said)
	}
	w.noGPU = false
	w.looks()
	if got := w.condition("general"); !strings.HasPrefix(got, "True") {
		t.Errorf("registered: %s", got)
	}
}

// TestPoolThatCanBuyNothingIsToldInKarpentersWord: its users look for that reason.
func TestPoolThatCanBuyNothingIsToldInKarpentersWord(t *testing.T) {
	p := pool("general", 50)
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: model.LabelInstanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{"C"}}}
	w := newWorld(t, p)
	w.looks()
	if len(w.said) == 0 || !strings.HasPrefix(w.said[0], "Warning NoCompatibleInstanceTypes: can buy nothing") {
		t.Errorf("events %q", w.said)
	}
}

// TestReadyIsLeftAlone: what is unwise is no reason not to buy.
func TestReadyIsLeftAlone(t *testing.T) {
	p := pool("general", 500)
	for _, name := range []string{karpv1.ConditionTypeValidationSucceeded, karpv1.ConditionTypeNodeClassReady} {
		p.StatusConditions().SetTrue(name)
	}
	w := newWorld(t, p)
	w.looks()
	got := &karpv1.NodePool{}
	if err := w.Kube.Get(t.Context(), client.ObjectKeyFromObject(p), got); err != nil {
		t.Fatal(err)
	}
	if !got.StatusConditions().IsTrue(status.ConditionReady) || !got.StatusConditions().Get(Condition).IsFalse() {
		t.Errorf("conditions %v", got.Status.Conditions)
	}
}

// TestPinnedImageIsFoundByTheClass: and when the class changes, within ten seconds.
func TestPinnedImageIsFoundByTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool("general", 50)
		p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
		class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}}
		w := newWorld(t, p, class)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Start(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.condition("general"); got != "none" || w.read != 1 {
			t.Errorf("%s; the rules were applied %d times to what did not change", got, w.read)
		}
		version := "202605.01.0"
		class.Spec.ImageVersion, class.Generation = &version, 2
		if err := w.Kube.Update(ctx, class); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := w.condition("general"); !strings.Contains(got, "boot from image version 202605.01.0 for ever") {
			t.Error(got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// slowWriter loses every first write to a conflict.
type slowWriter struct {
	client.Client
	conflicts int
}

func (s *slowWriter) Status() client.SubResourceWriter { return lost{s.Client.Status(), s} }

type lost struct {
	client.SubResourceWriter
	of *slowWriter
}

func (l lost) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
	if l.of.conflicts++; l.of.conflicts == 1 {
		return apierrors.NewConflict(schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}, o.GetName(), errors.New("written by another"))
	}
	return l.SubResourceWriter.Patch(ctx, o, p, options...)
}

// TestLostWriteIsRepeated: when another writer was faster, the next look tells.
func TestLostWriteIsRepeated(t *testing.T) {
	w := newWorld(t, pool("general", 500))
	w.Loop.Kube = &slowWriter{Client: w.Kube}
	w.looks()
	if got := w.condition("general"); got != "none" || len(w.said) > 0 {
		t.Errorf("the write was lost, and yet: %s, events %q", got, w.said)
	}
	w.looks()
	if got := w.condition("general"); !strings.HasPrefix(got, "False LimitAboveQuota") || len(w.said) != 1 {
		t.Errorf("%s, events %q", got, w.said)
	}
}

// backwards lists objects in one order and then in the other, as a cache may.
type backwards struct {
	client.Client
	lists int
}

func (b *backwards) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := b.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	b.lists++
	if b.lists%4 < 2 {
		return nil
	}
	switch l := list.(type) {
	case *karpv1.NodePoolList:
		slices.Reverse(l.Items)
	case *v1beta1.AKSNodeClassList:
		slices.Reverse(l.Items)
	}
	return nil
}

// TestOrderOfListsIsNoChange: the rules take a share of the processor time at rest when they
// are applied in every look.
func TestOrderOfListsIsNoChange(t *testing.T) {
	w := newWorld(t, pool("general", 50), pool("another", 50),
		&v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}},
		&v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "surge", Generation: 1}})
	w.Loop.Kube = &backwards{Client: w.Kube}
	w.looks()
	read := w.read
	if read == 0 {
		t.Fatal("the rules were not applied")
	}
	for range 4 {
		w.looks()
	}
	if w.read != read {
		t.Errorf("nothing has changed, and %d catalogues were read again", w.read-read)
	}
}
