//go:build scale && unix

package cloud_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// onePerNode is the pool and the workload of story leader, whose pods take a machine each.
func onePerNode(t *testing.T) [][]byte {
	t.Helper()
	story, err := scenario.Story("leader")
	if err != nil {
		t.Fatal(err)
	}
	return story.Manifests()
}

// electorate is a lab whose controller has two replicas.
type electorate struct {
	*labtest.Lab
	t      *testing.T
	azure  *cloud.Client
	claims dynamic.ResourceInterface
}

func newElectorate(t *testing.T) *electorate {
	t.Helper()
	l := start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs, Replicas: 2})
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(azure.Close)
	client, err := dynamic.NewForConfig(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	claims := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	for _, manifest := range onePerNode(t) {
		if err := lab.Apply(t.Context(), l.Config(), manifest); err != nil {
			t.Fatal(err)
		}
	}
	return &electorate{Lab: l, t: t, azure: azure, claims: claims}
}

// leader is who holds the lease, and its process; no process between two lives. A process
// that is started again in the same pod is another holder.
func (e *electorate) leader() (holder string, process lab.Identity) {
	e.t.Helper()
	lease, err := e.Client().CoordinationV1().Leases("nap-system").Get(e.t.Context(), "karpenter-leader-election", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", lab.Identity{}
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	for _, p := range e.State().Parts {
		if path.Base(p.Pod) == pod {
			process = p.Process
		}
	}
	return *lease.Spec.HolderIdentity, process
}

// bothReady reports whether both replicas are ready, by their probes.
func (e *electorate) bothReady() bool {
	pods, err := e.Client().CoreV1().Pods("nap-system").List(e.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=nap"})
	if err != nil {
		return false
	}
	ready := 0
	for i := range pods.Items {
		if slices.ContainsFunc(pods.Items[i].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	return ready == 2
}

func (e *electorate) scale(replicas int) {
	e.t.Helper()
	patch := []byte(`{"spec":{"replicas":` + strconv.Itoa(replicas) + `}}`)
	if _, err := e.Client().AppsV1().Deployments("default").Patch(e.t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// claimNames are the names of all NodeClaims.
func (e *electorate) claimNames(ctx context.Context) map[string]bool {
	names := map[string]bool{}
	if list, err := e.claims.List(ctx, metav1.ListOptions{}); err == nil {
		for _, c := range list.Items {
			names[c.GetName()] = true
		}
	}
	return names
}

// settled reports whether so many pods run, each on a machine, and there are no more.
func (e *electorate) settled(replicas int) bool {
	d, err := e.Client().AppsV1().Deployments("default").Get(e.t.Context(), "web", metav1.GetOptions{})
	if err != nil || int(d.Status.ReadyReplicas) != replicas {
		return false
	}
	accepted, err := e.azure.Accepted(e.t.Context())
	return err == nil && accepted == replicas && len(e.claimNames(e.t.Context())) == replicas
}

// bought counts the machines that were ever made, and those made twice for one claim.
func (e *electorate) bought() (all, twice int) {
	e.t.Helper()
	purchases, err := e.azure.Purchases(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	names := map[string]int{}
	for _, p := range purchases {
		if names[p.Machine.Name]++; names[p.Machine.Name] == 2 {
			twice++
		}
	}
	return len(purchases), twice
}

// lose takes the leader away, for ever or until the other one leads, and returns after
// which time that was. Meanwhile something happens; the other replica acts when it has made
// a NodeClaim, which is waited for where one must come.
func (e *electorate) lose(with syscall.Signal, meanwhile func(), claim bool) (leads, acts time.Duration) {
	e.t.Helper()
	var old string
	var process lab.Identity
	labtest.Await(e.t, "a leader that runs", func() bool {
		old, process = e.leader()
		return process.Alive()
	})
	if err := syscall.Kill(process.PID, with); err != nil {
		e.t.Fatal(err)
	}
	began := time.Now()
	before := e.claimNames(e.t.Context())
	meanwhile()
	labtest.Await(e.t, "the other replica to lead, and to make a NodeClaim", func() bool {
		if now, _ := e.leader(); leads == 0 && now != "" && now != old {
			leads = time.Since(began)
		}
		for name := range e.claimNames(e.t.Context()) {
			if acts == 0 && !before[name] {
				acts = time.Since(began)
			}
		}
		return leads > 0 && (acts > 0 || !claim)
	})
	if with == syscall.SIGSTOP {
		_ = syscall.Kill(process.PID, syscall.SIGCONT) // its probe may have ended it
		labtest.Await(e.t, "the replica that was stopped to end", func() bool { return !process.Alive() })
	}
	return leads, acts
}

// TestLeaderLostUnderLoad kills or stops the leader again and again while it buys, and
// while it gives back. A stopped one goes on when the other leads. Every pod needs a machine
// of its own, so that two leaders would buy more machines than there are pods.
func TestLeaderLostUnderLoad(t *testing.T) {
	rounds := 10
	if n, err := strconv.Atoi(os.Getenv("LEADER_KILLS")); err == nil {
		rounds = n
	}
	const few, many, most = 2, 6, 20 * time.Second
	e := newElectorate(t)
	labtest.Await(t, "the first pods", func() bool { return e.settled(few) })
	random := rand.New(rand.NewPCG(1, 2))
	needed := few // machines that must ever have been made
	var lead, act []time.Duration
	for round := range rounds {
		labtest.Await(t, "both replicas", e.bothReady)
		with := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[round%2]
		up, pods := round%4 < 2, few
		if up {
			pods = many
			needed += many - few
		}
		e.scale(pods)
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second)))) // anywhere in the buying
		leads, acts := e.lose(with, func() {
			if up { // only who leads next can buy for this one
				pods++
				needed++
				e.scale(pods)
			}
		}, up)
		lead = append(lead, leads)
		if up {
			act = append(act, acts)
		}
		labtest.Await(t, "a machine for each pod, and no other", func() bool { return e.settled(pods) })
		all, twice := e.bought()
		t.Logf("round %d: %s; the other leads after %s and has made a NodeClaim after %s; %d pods, %d machines bought", round+1,
			with, leads.Round(10*time.Millisecond), acts.Round(10*time.Millisecond), pods, all)
		if twice > 0 || all > needed {
			t.Fatalf("%d machines were bought, %d of them twice for one NodeClaim; the pods needed %d", all, twice, needed)
		}
		if up && round%4 == 0 { // the next round buys again
			e.scale(few)
			labtest.Await(t, "the machines to go", func() bool { return e.settled(few) })
		}
	}
	slices.Sort(lead)
	slices.Sort(act)
	t.Logf("%d rounds: the other leads after %s (median) to %s, acts after %s to %s; no machine too many", rounds,
		lead[len(lead)/2], lead[len(lead)-1], act[len(act)/2], act[len(act)-1])
	if worst := act[len(act)-1]; worst > most {
		t.Errorf("the other replica acted after %s, want at most %s", worst, most)
	}
}
