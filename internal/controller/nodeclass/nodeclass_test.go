package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass/formerhash"
)

// answers is a Finder that says what a test wants.
type answers struct {
	version string
	images  []v1beta1.NodeImage
	subnet  error
	any     error

	noImages error
}

func (a *answers) KubernetesVersion(context.Context, *v1beta1.AKSNodeClass) (string, error) {
	return a.version, a.any
}

func (a *answers) Images(_ context.Context, class *v1beta1.AKSNodeClass) ([]v1beta1.NodeImage, error) {
	if class.Status.KubernetesVersion == nil {
		return nil, errors.New("the version must be known before the images")
	}
	return a.images, errors.Join(a.noImages, a.any)
}
func (a *answers) LookAgain() time.Duration                            { return time.Hour }
func (a *answers) Subnet(context.Context, *v1beta1.AKSNodeClass) error { return a.subnet }
func (a *answers) LocalDNS(context.Context, *v1beta1.AKSNodeClass) (v1beta1.LocalDNSState, error) {
	return v1beta1.LocalDNSStateDisabled, a.any
}
func (a *answers) Validate(context.Context, *v1beta1.AKSNodeClass) error { return a.any }

func newKube(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	gv := karpv1.NodeClaim{}
	gvk, _, err := scheme.Scheme.ObjectKinds(&gv)
	if err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypes(gvk[0].GroupVersion(), &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	ref := func(f func(*karpv1.NodeClassReference) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{f(o.(*karpv1.NodeClaim).Spec.NodeClassRef)} }
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&v1beta1.AKSNodeClass{}).
		WithIndex(&karpv1.NodeClaim{}, "spec.nodeClassRef.group", ref(func(r *karpv1.NodeClassReference) string { return r.Group })).
		WithIndex(&karpv1.NodeClaim{}, "spec.nodeClassRef.kind", ref(func(r *karpv1.NodeClassReference) string { return r.Kind })).
		WithIndex(&karpv1.NodeClaim{}, "spec.nodeClassRef.name", ref(func(r *karpv1.NodeClassReference) string { return r.Name })).
		Build()
}

func class(change ...func(*v1beta1.AKSNodeClass)) *v1beta1.AKSNodeClass {
	c := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1}}
	for _, f := range change {
		f(c)
	}
	return c
}

func claimOf(name string, change ...func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: kind, Name: "default"}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func read(t *testing.T, kube client.Client) *v1beta1.AKSNodeClass {
	t.Helper()
	c := &v1beta1.AKSNodeClass{}
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "default"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStatusResolvesClass(t *testing.T) {
	good := answers{version: "1.34.2", images: []v1beta1.NodeImage{{ID: "image"}}}
	for _, c := range []struct {
		name    string
		finder  answers
		want    map[string]string
		recheck time.Duration
	}{
		{"all is well", good, map[string]string{
			status.ConditionReady: "True/Ready", v1beta1.ConditionSubnetsReady: "True/SubnetsReady",
			v1beta1.ConditionImagesReady: "True/ImagesReady",
		}, recheckReady},
		{"the subnet is wrong", answers{
			version: good.version, images: good.images, subnet: &Failure{Reason: v1beta1.ReasonSubnetNotFound, Message: "no such subnet"},
		}, map[string]string{
			status.ConditionReady:         "False/UnhealthyDependents",
			v1beta1.ConditionSubnetsReady: "False/SubnetNotFound", v1beta1.ConditionImagesReady: "True/ImagesReady",
		}, recheckFailed},
		{"the subnet cannot be read", answers{version: good.version, images: good.images, subnet: errors.New("timeout")}, map[string]string{
			status.ConditionReady: "Unknown/ReconcilingDependents", v1beta1.ConditionSubnetsReady: "Unknown/SubnetUnknownError",
		}, recheckUnknown},
		{"Azure does not answer", answers{any: errors.New("timeout")}, map[string]string{
			status.ConditionReady: "Unknown/ReconcilingDependents", v1beta1.ConditionKubernetesVersionReady: "Unknown/Unknown",
		}, recheckUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			kube := newKube(t, class())
			result, err := NewStatus(kube, clock.RealClock{}, &c.finder).Reconcile(t.Context(), read(t, kube))
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != c.recheck {
				t.Errorf("looks again after %s, want %s", result.RequeueAfter, c.recheck)
			}
			got := read(t, kube)
			for condition, want := range c.want {
				cond := got.StatusConditions().Get(condition)
				if s := fmt.Sprintf("%s/%s", cond.Status, cond.Reason); s != want || cond.ObservedGeneration != got.Generation {
					t.Errorf("%s is %s of generation %d, want %s", condition, s, cond.ObservedGeneration, want)
				}
			}
		})
	}
}

func TestReadyStatusSurvivesReadErrorButNotNewSpec(t *testing.T) {
	kube := newKube(t, class())
	finder := &answers{version: "1.34.2", images: []v1beta1.NodeImage{{ID: "image"}}}
	s := NewStatus(kube, clock.RealClock{}, finder)
	step := func() *v1beta1.AKSNodeClass {
		t.Helper()
		if _, err := s.Reconcile(t.Context(), read(t, kube)); err != nil {
			t.Fatal(err)
		}
		return read(t, kube)
	}
	step()
	finder.any = errors.New("timeout")
	if got := step(); !got.StatusConditions().IsTrue(status.ConditionReady) {
		t.Error("one failed call has stopped all purchases")
	}
	changed := read(t, kube)
	changed.Generation = 2
	if err := kube.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if got := step(); got.StatusConditions().IsTrue(status.ConditionReady) {
		t.Error("the class is Ready on answers about its old spec")
	}
}

func TestImagesNotReadyAfterUpgradeUntilResolved(t *testing.T) {
	kube := newKube(t, class())
	finder := &answers{version: "1.33.9", images: []v1beta1.NodeImage{{ID: "2204"}}}
	s := NewStatus(kube, clock.RealClock{}, finder)
	step := func(images, reason string) {
		t.Helper()
		if _, err := s.Reconcile(t.Context(), read(t, kube)); err != nil {
			t.Fatal(err)
		}
		got := read(t, kube)
		cond := got.StatusConditions().Get(v1beta1.ConditionImagesReady)
		if cond.Reason != reason || cond.IsTrue() != (reason == v1beta1.ConditionImagesReady) || got.Status.Images[0].ID != images {
			t.Errorf("images %v, ImagesReady %s with reason %s (%s); want %s and %s",
				got.Status.Images, cond.Status, cond.Reason, cond.Message, images, reason)
		}
		if _, err := got.Images(); (err == nil) != cond.IsTrue() {
			t.Errorf("machines are given images although ImagesReady is %s: %v", cond.Status, err)
		}
	}
	step("2204", v1beta1.ConditionImagesReady)
	finder.version, finder.noImages = "1.34.1", errors.New("timeout")
	step("2204", v1beta1.ReasonKubernetesUpgrade)
	step("2204", v1beta1.ReasonKubernetesUpgrade)
	finder.images, finder.noImages = []v1beta1.NodeImage{{ID: "2404"}}, nil
	step("2404", v1beta1.ConditionImagesReady)
}

func TestHashVersionChangeCausesNoDrift(t *testing.T) {
	old := map[string]string{v1beta1.AnnotationHash: "old", v1beta1.AnnotationHashVersion: "v0"}
	kube := newKube(t,
		class(func(c *v1beta1.AKSNodeClass) { c.Annotations = old }),
		claimOf("sound", func(c *karpv1.NodeClaim) { c.Annotations = old }),
		claimOf("drifted", func(c *karpv1.NodeClaim) {
			c.Annotations = old
			c.StatusConditions().SetTrue(karpv1.ConditionTypeDrifted)
		}))
	if _, err := NewHash(kube).Reconcile(t.Context(), read(t, kube)); err != nil {
		t.Fatal(err)
	}
	want, err := class().Hash()
	if err != nil {
		t.Fatal(err)
	}
	for name, hash := range map[string]string{"sound": want, "drifted": "old"} {
		claim := &karpv1.NodeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: name}, claim); err != nil {
			t.Fatal(err)
		}
		if claim.Annotations[v1beta1.AnnotationHash] != hash || claim.Annotations[v1beta1.AnnotationHashVersion] != v1beta1.HashVersion {
			t.Errorf("%s is stamped %v, want hash %s of version %s", name, claim.Annotations, hash, v1beta1.HashVersion)
		}
	}
	if got := read(t, kube).Annotations[v1beta1.AnnotationHash]; got != want {
		t.Errorf("the class is stamped %s, want %s", got, want)
	}
}

func TestFormerHashOfSameVersionCausesNoDrift(t *testing.T) {
	tuned := func(c *v1beta1.AKSNodeClass) { c.Spec.LinuxOSConfig = &v1beta1.LinuxOSConfiguration{} }
	want, err := class(tuned).Hash()
	if err != nil {
		t.Fatal(err)
	}
	former, err := formerhash.Of(class(tuned))
	if err != nil || len(former) != 1 {
		t.Fatalf("former hashes %v, %v, want one", former, err)
	}
	stamp := func(hash string) map[string]string {
		return map[string]string{v1beta1.AnnotationHash: hash, v1beta1.AnnotationHashVersion: v1beta1.HashVersion}
	}
	kube := newKube(t,
		class(tuned, func(c *v1beta1.AKSNodeClass) { c.Annotations = stamp(former[0]) }),
		claimOf("former", func(c *karpv1.NodeClaim) { c.Annotations = stamp(former[0]) }),
		claimOf("changed", func(c *karpv1.NodeClaim) { c.Annotations = stamp("of another spec") }))
	if _, err := NewHash(kube).Reconcile(t.Context(), read(t, kube)); err != nil {
		t.Fatal(err)
	}
	for name, hash := range map[string]string{"former": want, "changed": "of another spec"} {
		claim := &karpv1.NodeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: name}, claim); err != nil {
			t.Fatal(err)
		}
		if got := claim.Annotations[v1beta1.AnnotationHash]; got != hash {
			t.Errorf("%s is stamped %s, want %s", name, got, hash)
		}
	}
	if got := read(t, kube).Annotations[v1beta1.AnnotationHash]; got != want {
		t.Errorf("the class is stamped %s, want %s", got, want)
	}
}

type told struct{ messages []string }

func (r *told) Publish(evts ...events.Event) {
	for _, e := range evts {
		r.messages = append(r.messages, e.Reason+": "+e.Message)
	}
}

func TestClassFinalizerStaysWhileClaimsExist(t *testing.T) {
	var objects []client.Object
	for i := range 7 {
		objects = append(objects, claimOf(fmt.Sprint("claim-", i)))
	}
	kube := newKube(t, append(objects, class())...)
	recorder := &told{}
	termination := NewTermination(kube, recorder)
	step := func() reconcile.Result {
		t.Helper()
		result, err := termination.Reconcile(t.Context(), read(t, kube))
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	step()
	if err := kube.Delete(t.Context(), read(t, kube)); err != nil {
		t.Fatal(err)
	}
	if result := step(); result.RequeueAfter != remindEvery {
		t.Errorf("comes again after %s", result.RequeueAfter)
	}
	want := "WaitingOnNodeClaimTermination: Waiting on NodeClaim termination for claim-0, claim-1, claim-2, claim-3, claim-4 and 2 more"
	if len(recorder.messages) != 1 || recorder.messages[0] != want {
		t.Errorf("got %v", recorder.messages)
	}
	for _, o := range objects {
		if err := kube.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "default"},
		&v1beta1.AKSNodeClass{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the class is still there: %v", err)
	}
}
