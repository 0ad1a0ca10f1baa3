package cloudprovider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// failing is a cluster that does not answer.
type failing struct {
	client.Reader
	err error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func TestClusterDNSAddressIsLookedUp(t *testing.T) {
	service := func(address string) client.Reader {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}}
		s.Spec.ClusterIP = address
		return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(s).Build()
	}
	for name, row := range map[string]struct {
		kube client.Reader
		want string
	}{
		"a service network of one's own": {service("172.20.0.10"), "172.20.0.10"},
		"a Service without an address":   {service("None"), "10.0.0.10"},
		"a Service that has none yet":    {service(""), "10.0.0.10"},
		"no such Service":                {fake.NewClientBuilder().WithScheme(scheme(t)).Build(), "10.0.0.10"},
		"not permitted": {failing{err: apierrors.NewForbidden(schema.GroupResource{Resource: "services"},
			"kube-dns", errors.New("no"))}, "10.0.0.10"},
	} {
		if got, err := ClusterDNS(t.Context(), row.kube); err != nil || got != row.want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, row.want)
		}
	}
	if got, err := ClusterDNS(t.Context(), failing{err: errors.New("timeout")}); err == nil ||
		!strings.Contains(err.Error(), "DNS_SERVICE_IP") {
		t.Errorf("no answer: %q, %v, want what to do", got, err)
	}
}

func TestRepairPoliciesCoverAKSNodeConditions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		got, drains := map[string]time.Duration{}, map[string]time.Duration{}
		for _, p := range w.port.RepairPolicies() {
			drains[string(p.ConditionType)] = *p.TerminationGracePeriod
			got[string(p.ConditionType)+"="+string(p.ConditionStatus)] = p.TolerationDuration
		}
		for condition, want := range map[string]time.Duration{
			"Ready=False": 10 * time.Minute, "Ready=Unknown": 10 * time.Minute,
			"kubernetes.azure.com/NodeHealthy=False": 0, "PreemptionScheduled=True": 0,
		} {
			if after, ok := got[condition]; !ok || after != want {
				t.Errorf("%s is repaired after %s (%t), want after %s", condition, after, ok, want)
			}
		}
		for condition, want := range map[string]time.Duration{
			"Ready": 10 * time.Minute, "kubernetes.azure.com/NodeHealthy": 10 * time.Minute, "PreemptionScheduled": 30 * time.Second,
		} {
			if drains[condition] != want {
				t.Errorf("a node repaired for %s is drained for %s, want %s", condition, drains[condition], want)
			}
		}
		for _, condition := range []string{"KernelDeadlock=True", "ReadonlyFilesystem=True", "KubeletProblem=True", "ContainerRuntimeProblem=True"} {
			if after, ok := got[condition]; !ok || after != 10*time.Minute {
				t.Errorf("%s is repaired after %s (%t), want after 10m", condition, after, ok)
			}
		}
		if len(got) != 8 {
			t.Errorf("policies %v, want eight", got)
		}
		gates := &options.Options{FeatureGates: options.FeatureGates{NodeRepair: true}}
		matcher, err := health.NewRepairPolicyMatcher(options.ToContext(t.Context(), gates), w.port)
		if err != nil {
			t.Fatalf("Karpenter refuses the policies: %v", err)
		}
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"},
		}}}
		repair := health.Resolve(matcher.Match(node), time.Now(), time.Time{})
		if repair.Action != karpcloud.ReplaceNode || repair.TerminationGracePeriod == nil || *repair.TerminationGracePeriod != 10*time.Minute {
			t.Errorf("a node that says nothing is repaired by %+v, want that it is replaced after a bounded drain", repair)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: "KernelDeadlock", Status: corev1.ConditionTrue, Reason: "AUFSUmountHung"}}
		repair = health.Resolve(matcher.Match(node), time.Now(), time.Time{})
		if repair.Action != karpcloud.RebootNode || repair.TerminationGracePeriod == nil || *repair.TerminationGracePeriod != 5*time.Minute {
			t.Errorf("a node whose kernel hangs is repaired by %+v, want that it is rebooted after a bounded drain", repair)
		}
	})
}
