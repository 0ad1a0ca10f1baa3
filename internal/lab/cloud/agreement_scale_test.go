//go:build scale

package cloud_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/model"
)

// agreeWithin is how long event, snapshot and commands may differ after something has
// changed: the controller plans, publishes at most every five seconds, and sends events.
const agreeWithin = 60 * time.Second

// inquiry asks all that tell of the pods of a lab.
type inquiry struct {
	t      *testing.T
	lab    *labtest.Lab
	azure  *cloud.Client
	reader client.Client
	nap    string
}

// TestAllSayTheSameInTheLab: in a real control plane and under faults of Azure, the
// event on a pod, the controller's snapshot, nap explain and nap plan say the same of every
// pod that waits, and none of them that a pod waits which has a machine.
func TestAllSayTheSameInTheLab(t *testing.T) {
	q := &inquiry{t: t, nap: build(t, "nap")}
	q.lab = start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs})
	azure, err := cloud.Open(q.lab.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(azure.Close)
	q.azure = azure
	types := scheme.Scheme // Karpenter's own kinds are in it
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	if q.reader, err = client.New(q.lab.Config(), client.Options{Scheme: types}); err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply(t.Context(), q.lab.Config(), []byte(defaultClass)); err != nil {
		t.Fatal(err)
	}
	for _, s := range troubles() {
		t.Run(s.name, func(t *testing.T) { q.examine(t, s) })
	}
}

const defaultClass = `apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: {osDiskSizeGB: 128}
`

// examine brings a situation about, and waits until all say the same of it.
func (q *inquiry) examine(t *testing.T, s trouble) {
	for _, fault := range s.faults {
		words := strings.Fields(fault)
		params := map[string]string{}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			params[key] = value
		}
		if _, err := q.azure.AddFault(t.Context(), words[0], params); err != nil {
			t.Fatal(err)
		}
	}
	if s.mode != "" {
		q.setMode(t, s.mode)
	}
	if err := lab.Apply(t.Context(), q.lab.Config(), []byte(s.manifests())); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var reasons []model.Reason
	var differ error
	for end := began.Add(agreeWithin); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if reasons, differ = q.compare(t, s); differ == nil {
			break
		}
	}
	if differ != nil {
		t.Errorf("after %s: %v", agreeWithin, differ)
	} else {
		t.Logf("all agree after %s: %v", time.Since(began).Round(time.Millisecond), reasons)
	}
	q.clear(t, s)
}

// setMode switches provisioning on or off, as people do it, and waits until the controller
// says that it has seen it.
func (q *inquiry) setMode(t *testing.T, mode v1alpha1.Mode) {
	t.Helper()
	text := fmt.Sprintf("apiVersion: %s\nkind: NodeAutoProvisioning\nmetadata: {name: %s}\nspec: {mode: %s}\n",
		v1alpha1.GroupVersion(), v1alpha1.NodeAutoProvisioningName, mode)
	labtest.Await(t, "mode "+string(mode), func() bool { return lab.Apply(t.Context(), q.lab.Config(), []byte(text)) == nil })
	want := metav1.ConditionTrue
	if mode == v1alpha1.ModeManual {
		want = metav1.ConditionFalse
	}
	labtest.Await(t, "the controller to be in mode "+string(mode), func() bool {
		var object v1alpha1.NodeAutoProvisioning
		err := q.reader.Get(t.Context(), client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, &object)
		return err == nil && apimeta.IsStatusConditionPresentAndEqual(object.Status.Conditions, v1alpha1.ConditionProvisioning, want)
	})
}

// clear ends a situation, so that the next one begins without its machines and faults.
func (q *inquiry) clear(t *testing.T, s trouble) {
	if err := q.azure.ClearFaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.mode != "" {
		q.setMode(t, v1alpha1.ModeAuto)
	}
	// In a namespace that ends nap may evict nothing and send no events, so that it goes last.
	remove := func(o client.Object, options ...client.DeleteOption) {
		if err := q.reader.Delete(t.Context(), o, options...); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	named := metav1.ObjectMeta{Namespace: s.name, Name: s.name}
	remove(&appsv1.Deployment{ObjectMeta: named}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	labtest.Await(t, "the pods of "+s.name+" to go", func() bool {
		var pods corev1.PodList
		err := q.reader.List(t.Context(), &pods, client.InNamespace(s.name), client.MatchingLabels{"app": s.name})
		return err == nil && len(pods.Items) == 0
	})
	remove(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	labtest.Await(t, "the machines of "+s.name+" to go", func() bool {
		var claims karpv1.NodeClaimList
		return q.reader.List(t.Context(), &claims) == nil && len(claims.Items) == 0
	})
	remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}

// told is what is said of one pod.
type told struct {
	// event is its last event of a plan, without Karpenter's own words; verdict is of the
	// snapshot, nil for none.
	event   string
	verdict *snapshot.Verdict
	// awaited is the last event about the machine that is on its way, machine what the
	// snapshot says of it, nil where there is none.
	awaited string
	machine *v1alpha1.MachineUnderWay
	// story is what nap explain answers, waits its exit code 2; planned is what nap plan
	// says of a pod that stays pending.
	story   struct{ Verdict, Fix string }
	waits   bool
	planned struct{ Pod, Reason, Message string }
}

// compare returns the reasons for which pods wait, and in what two differ. It is an error,
// too, when a pod waits for another reason than the situation has, or none waits that should.
func (q *inquiry) compare(t *testing.T, s trouble) ([]model.Reason, error) {
	var pods corev1.PodList
	if err := q.reader.List(t.Context(), &pods, client.InNamespace(s.name), client.MatchingLabels{"app": s.name}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != max(1, s.pods) {
		return nil, fmt.Errorf("there are %d pods", len(pods.Items))
	}
	answers, err := q.ask(t, pods.Items)
	if err != nil {
		return nil, err
	}
	if s.underway != "" {
		for i := range pods.Items {
			if err := answers[i].onItsWay(&pods.Items[i], s.underway); err != nil {
				return nil, err
			}
		}
		return nil, q.screen(t, s, nil)
	}
	var reasons []model.Reason
	for i := range pods.Items {
		waits, reason, err := answers[i].agree(&pods.Items[i])
		if err != nil {
			return nil, err
		}
		if waits && !slices.Contains(s.reasons, reason) {
			return nil, fmt.Errorf("%s/%s waits for %q, want one of %v", s.name, pods.Items[i].Name, reason, s.reasons)
		}
		if waits {
			reasons = append(reasons, reason)
		}
	}
	if err := q.screen(t, s, reasons); err != nil {
		return nil, err
	}
	if len(s.reasons) > 0 && len(reasons) == 0 {
		return nil, errors.New("no pod waits")
	}
	return reasons, nil
}

// screen asks nap status: it must count as many pods of the situation as wait, for the same
// reasons.
func (q *inquiry) screen(t *testing.T, s trouble, reasons []model.Reason) error {
	var status struct {
		PendingPods int32
		Status      v1alpha1.SnapshotStatus
	}
	if _, err := q.run(t, &status, "status", "-o", "json"); err != nil {
		return err
	}
	counted := map[model.Reason]int32{}
	for _, p := range status.Status.Pending {
		if strings.Contains(p.Workload, s.name) {
			counted[model.Reason(p.Reason)] += p.Pods
		}
	}
	want := map[model.Reason]int32{}
	for _, r := range reasons {
		want[r]++
	}
	if !maps.Equal(counted, want) || int(status.PendingPods) != len(reasons) {
		return fmt.Errorf("nap status counts %d pods, %v; the others say %v", status.PendingPods, counted, want)
	}
	return nil
}

// agree returns whether a pod waits, for which reason, and in what two differ.
func (a *told) agree(pod *corev1.Pod) (waits bool, reason model.Reason, err error) {
	name := pod.Namespace + "/" + pod.Name
	if pod.Spec.NodeName != "" {
		if a.verdict != nil && a.verdict.NodeClaim == "" || a.waits || a.planned.Pod != "" {
			return false, "", fmt.Errorf("%s has a node, snapshot %+v, nap explain %q, nap plan %q", name, a.verdict, a.story.Verdict, a.planned.Message)
		}
		return false, "", nil
	}
	v := a.verdict
	switch {
	case v == nil:
		return false, "", fmt.Errorf("%s has no node and no verdict", name)
	case v.NodeClaim != "":
		return false, "", fmt.Errorf("%s: NodeClaim %s is on its way", name, v.NodeClaim)
	case a.event != v.Event:
		return false, "", fmt.Errorf("%s: event %q, snapshot %q", name, a.event, v.Event)
	case !a.waits || a.story.Verdict != fmt.Sprintf("%s stays pending: %s.", name, v.Why) || a.story.Fix != v.Fix:
		return false, "", fmt.Errorf("%s: nap explain %q, fix %q; snapshot %q, fix %q", name, a.story.Verdict, a.story.Fix, v.Why, v.Fix)
	case a.planned.Reason != v.Reason || !strings.HasPrefix(a.planned.Message, v.Why):
		return false, "", fmt.Errorf("%s: nap plan %s: %q; snapshot %s: %q", name, a.planned.Reason, a.planned.Message, v.Reason, v.Why)
	}
	return true, model.Reason(v.Reason), nil
}

// onItsWay returns in what two differ of a pod whose machine Azure does not make: all have Azure's
// words, which begin so, the NodeClaim, and when that is given up.
func (a *told) onItsWay(pod *corev1.Pod, said string) error {
	name, m := pod.Namespace+"/"+pod.Name, a.machine
	if a.verdict == nil || m == nil || m.GivenUp == nil || !strings.HasPrefix(m.Trouble, said+": ") {
		return fmt.Errorf("%s: snapshot %+v, machine %+v", name, a.verdict, m)
	}
	until := m.GivenUp.UTC().Format("15:04:05Z")
	event, claim, _ := strings.Cut(a.awaited, "; given up at ")
	if !strings.HasPrefix(event, said+": ") || claim != fmt.Sprintf("%s (NodeClaim %s)", until, m.NodeClaim) {
		return fmt.Errorf("%s: event %q, machine %+v", name, a.awaited, m)
	}
	for _, part := range []string{"waits for a machine that is on its way: NodeClaim " + m.NodeClaim, "given up at " + until, "; " + said + ": "} {
		if a.waits || !strings.Contains(a.story.Verdict, part) || strings.Contains(a.story.Verdict, "gets a place") {
			return fmt.Errorf("%s: nap explain %q (pending %v) without %q", name, a.story.Verdict, a.waits, part)
		}
	}
	if a.planned.Pod != "" {
		return fmt.Errorf("%s: nap plan %s: %q", name, a.planned.Reason, a.planned.Message)
	}
	return nil
}

// ask asks event, snapshot and commands about pods of one namespace.
func (q *inquiry) ask(t *testing.T, pods []corev1.Pod) ([]told, error) {
	document, err := snapshot.Read(t.Context(), q.reader)
	if err != nil {
		return nil, err
	}
	var events corev1.EventList
	if err := q.reader.List(t.Context(), &events, client.InNamespace(pods[0].Namespace)); err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Unschedulable []struct{ Pod, Reason, Message string }
	}
	if _, err := q.run(t, &plan, "plan", "-o", "json"); err != nil {
		return nil, err
	}
	answers := make([]told, len(pods))
	for i := range pods {
		a, name := &answers[i], pods[i].Namespace+"/"+pods[i].Name
		a.event = lastSaid(events.Items, pods[i].Name, "Failed to schedule pod, ")
		a.awaited = lastSaid(events.Items, pods[i].Name, "Its machine is not there yet: ")
		for j := range document.Verdicts {
			if slices.Contains(document.Verdicts[j].Pods, name) {
				a.verdict = &document.Verdicts[j]
			}
		}
		for j := range document.Status.Machines {
			if m := &document.Status.Machines[j]; a.verdict != nil && m.NodeClaim == a.verdict.NodeClaim {
				a.machine = m
			}
		}
		for _, p := range plan.Unschedulable {
			if p.Pod == name {
				a.planned = p
			}
		}
		if a.waits, err = q.run(t, &a.story, "explain", "pod", pods[i].Name, "-n", pods[i].Namespace, "-o", "json"); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// lastSaid is what the last event on a pod says that begins so, without its beginning.
func lastSaid(events []corev1.Event, pod, beginning string) (text string) {
	var last time.Time
	for i := range events {
		e := &events[i]
		at := e.LastTimestamp.Time
		if e.Series != nil {
			at = e.Series.LastObservedTime.Time
		}
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.InvolvedObject.Name == pod && strings.HasPrefix(e.Message, beginning) && !at.Before(last) {
			text, last = strings.TrimPrefix(e.Message, beginning), at
		}
	}
	return text
}

// run runs nap on the lab's cluster, reads its JSON, and reports whether it ended with exit
// code 2; other codes than that and 0 are an error.
func (q *inquiry) run(t *testing.T, answer any, args ...string) (two bool, err error) {
	cmd := exec.CommandContext(t.Context(), q.nap, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(q.lab.Env.Dir, "kubeconfig"))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if two = errors.As(err, &exit) && exit.ExitCode() == 2; err != nil && !two {
		if exit != nil {
			out = exit.Stderr
		}
		return false, fmt.Errorf("nap %s: %w: %s", strings.Join(args, " "), err, out)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return false, fmt.Errorf("nap %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return two, nil
}
