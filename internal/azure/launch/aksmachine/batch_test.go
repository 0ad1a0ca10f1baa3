package aksmachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// sent is a batch as AKS gets it, and when.
type sent struct {
	name  string
	body  machine
	batch []batchEntry
	after time.Duration
}

// wire notes what is sent, and answers.
type wire struct {
	mu     sync.Mutex
	began  time.Time
	sent   []sent
	answer func(n int, s sent) error // of the n-th call, from 0; nil accepts
}

func (w *wire) send(ctx context.Context, name string, body machine, batch []batchEntry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sent{name, body, slices.Clone(batch), time.Since(w.began)}
	w.sent = append(w.sent, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.answer == nil {
		return nil
	}
	return w.answer(len(w.sent)-1, s)
}

// inBatches runs a test with a batcher of AKS's usual settings.
func inBatches(t *testing.T, test func(t *testing.T, w *wire, b *batcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{began: time.Now()}
		test(t, w, newBatcher(Batching{Idle: time.Second, Max: 5 * time.Second, Size: 50}, w.send))
	})
}

// alike is a machine of a size in a zone.
func alike(name, zone string) machine {
	m := machine{Zones: []string{zone}}
	m.Properties.Hardware.VMSize = "Standard_D4s_v5"
	m.Properties.Tags = map[string]string{launch.TagClaim: name}
	return m
}

// putAll asks for machines at once and returns what became of each.
func putAll(t *testing.T, b *batcher, machines map[string]machine) map[string]error {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := map[string]error{}
	for name, body := range machines {
		wg.Go(func() {
			err := b.put(t.Context(), name, body)
			mu.Lock()
			defer mu.Unlock()
			out[name] = err
		})
	}
	wg.Wait()
	return out
}

func names(batch []batchEntry) string {
	var out []string
	for _, e := range batch {
		out = append(out, e.MachineName)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestBatchSentAfterOneIdleSecond(t *testing.T) {
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		var wg sync.WaitGroup
		for i, wait := range []time.Duration{0, 900 * time.Millisecond, 1800 * time.Millisecond, 2900 * time.Millisecond} {
			wg.Go(func() {
				time.Sleep(wait)
				if err := b.put(t.Context(), fmt.Sprintf("m%d", i), alike("", "1")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(w.sent) != 2 || names(w.sent[0].batch) != "m0 m1 m2" ||
			w.sent[0].after != 2800*time.Millisecond || names(w.sent[1].batch) != "m3" {
			t.Errorf("sent %+v, want three after 2.8 s and the one that came later", w.sent)
		}
	})
}

func TestBatchSentAfterFiveSecondsAtMost(t *testing.T) {
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 450 * time.Millisecond)
				if err := b.put(t.Context(), fmt.Sprintf("m%02d", i), alike("", "1")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(w.sent) != 2 || w.sent[0].after != 5*time.Second || len(w.sent[0].batch) != 12 || len(w.sent[1].batch) != 8 {
			t.Errorf("sent %d batches, the first after %s with %d machines; want two, 5s, 12", len(w.sent), w.sent[0].after, len(w.sent[0].batch))
		}
	})
}

func TestBatchOfFiftySentAtOnce(t *testing.T) {
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		machines := map[string]machine{}
		for i := range 120 {
			machines[fmt.Sprintf("m%03d", i)] = alike("", "1")
		}
		putAll(t, b, machines)
		var sizes []int
		for _, s := range w.sent {
			sizes = append(sizes, len(s.batch))
			if len(s.batch) == 50 && s.after != 0 || len(s.batch) == 20 && s.after != time.Second {
				t.Errorf("a batch of %d was sent after %s", len(s.batch), s.after)
			}
		}
		if slices.Sort(sizes); !slices.Equal(sizes, []int{20, 50, 50}) {
			t.Errorf("batches of %v machines, want 50, 50 and 20", sizes)
		}
	})
}

func TestBatchKeyIgnoresZoneAndTags(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(m *machine)
		batches int
	}{
		"zone":     {func(m *machine) { m.Zones = []string{"2"} }, 1},
		"no zone":  {func(m *machine) { m.Zones = nil }, 1},
		"tags":     {func(m *machine) { m.Properties.Tags = map[string]string{"team": "web"} }, 1},
		"size":     {func(m *machine) { m.Properties.Hardware.VMSize = "Standard_D8s_v5" }, 2},
		"priority": {func(m *machine) { m.Properties.Priority = prioritySpot }, 2},
		"mode":     {func(m *machine) { m.Properties.Mode = "System" }, 2},
		"image":    {func(m *machine) { m.Properties.NodeImageVersion = "AKSUbuntu-2404gen2containerd-202606.09.0" }, 2},
		"labels":   {func(m *machine) { m.Properties.Kubernetes.NodeLabels = map[string]string{"team": "web"} }, 2},
		"taints": {func(m *machine) {
			m.Properties.Kubernetes.NodeInitializationTaints = []string{"gpu=yes:NoSchedule"}
		}, 2},
		"version":                        {func(m *machine) { m.Properties.Kubernetes.OrchestratorVersion = "1.35.2" }, 2},
		"pods":                           {func(m *machine) { m.Properties.Kubernetes.MaxPods = 30 }, 2},
		"disk":                           {func(m *machine) { m.Properties.OperatingSystem.OSDiskSizeGB = 256 }, 2},
		"subnet":                         {func(m *machine) { m.Properties.Network = &network{VnetSubnetID: "/subnets/other"} }, 2},
		"trusted launch":                 {func(m *machine) { m.Properties.Security.EnableVTPM = true }, 2},
		"ultra disks, in the same zone":  {func(m *machine) { m.Properties.Hardware.UltraSSDEnabled = true }, 2},
		"ultra disks of both, same zone": {nil, 1},
	} {
		t.Run(what, func(t *testing.T) {
			inBatches(t, func(t *testing.T, w *wire, b *batcher) {
				one, two := alike("one", "1"), alike("two", "1")
				if c.change == nil {
					one.Properties.Hardware.UltraSSDEnabled, two.Properties.Hardware.UltraSSDEnabled = true, true
				} else {
					c.change(&two)
				}
				putAll(t, b, map[string]machine{"one": one, "two": two})
				if len(w.sent) != c.batches {
					t.Errorf("%d batches, want %d", len(w.sent), c.batches)
				}
			})
		})
	}
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		one, two := alike("one", "1"), alike("two", "2")
		one.Properties.Hardware.UltraSSDEnabled, two.Properties.Hardware.UltraSSDEnabled = true, true
		putAll(t, b, map[string]machine{"one": one, "two": two})
		if len(w.sent) != 2 {
			t.Errorf("machines with ultra disks in two zones went in %d batches, want 2", len(w.sent))
		}
		for _, s := range w.sent {
			if len(s.body.Zones) != 1 || s.body.Properties.Tags != nil {
				t.Errorf("the shared body of machines with ultra disks has zones %v and tags %v", s.body.Zones, s.body.Properties.Tags)
			}
		}
	})
}

func TestBatchHeaderHasEveryMachine(t *testing.T) {
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		machines := map[string]machine{"one": alike("one", "1"), "two": alike("two", "2"), "three": {}}
		regional := alike("three", "")
		regional.Zones = nil
		machines["three"] = regional
		putAll(t, b, machines)
		if len(w.sent) != 1 {
			t.Fatalf("%d batches, want one", len(w.sent))
		}
		s := w.sent[0]
		if s.body.Properties.Tags != nil || s.body.Zones != nil || s.name != s.batch[0].MachineName {
			t.Errorf("the call for %s has zones %v and tags %v in the body that all share, and names %s first",
				s.name, s.body.Zones, s.body.Properties.Tags, s.batch[0].MachineName)
		}
		slices.SortFunc(s.batch, func(a, b batchEntry) int { return strings.Compare(a.MachineName, b.MachineName) })
		const want = `[{"machineName":"one","zones":["1"],"tags":{"karpenter.azure.com_aksmachine_nodeclaim":"one"}},` +
			`{"machineName":"three","zones":[],"tags":{"karpenter.azure.com_aksmachine_nodeclaim":"three"}},` +
			`{"machineName":"two","zones":["2"],"tags":{"karpenter.azure.com_aksmachine_nodeclaim":"two"}}]`
		if text, err := json.Marshal(s.batch); err != nil || string(text) != want {
			t.Errorf("header %s, %v, want %s", text, err, want)
		}
	})
}

// refusal is an answer of AKS, which puts no frame around its errors.
func refusal(status int, code, message string, details ...unavailable.Cause) error {
	text, err := json.Marshal(unavailable.Cause{Code: code, Message: message, Details: details})
	if err != nil {
		return err
	}
	return runtime.NewResponseError(&http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Body: io.NopCloser(strings.NewReader(string(text))),
		Request: &http.Request{Method: http.MethodPut, URL: &url.URL{}},
	})
}

// outcomes says in a word what became of each machine.
func outcomes(results map[string]error) string {
	var out []string
	for name, err := range results {
		word := "accepted"
		if err != nil {
			word = string(unavailable.Classify(err).Kind) + "/" + unavailable.Classify(err).Code
		}
		out = append(out, name+" "+word)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestBatchRefusalPerMachine(t *testing.T) {
	unsupported := unavailable.Cause{Code: "VMSizeNotSupported", Message: "no", Target: "a"}
	wrapped := unavailable.Cause{
		Code: "QuotaExceeded", Message: "too much", Target: "a", Details: []unavailable.Cause{{Code: "SkuNotAvailable", Message: "none left"}},
	}
	plain, err := json.Marshal([]unavailable.Cause{unsupported})
	if err != nil {
		t.Fatal(err)
	}
	framed, err := json.Marshal(unavailable.Cause{Code: "BatchMachineClientError", Details: []unavailable.Cause{wrapped}})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		answers []error // one a call, in turn; then all is accepted
		want    string
		sent    string // the machines of each call
	}{
		"one machine is wrong": {[]error{refusal(400, "BatchMachineClientError", "1 of 3", unsupported)},
			"a SKUNotSupported/VMSizeNotSupported, b accepted, c accepted", "a b c; b c"},
		"what AKS wraps counts": {[]error{refusal(400, "BatchMachineClientError", "1 of 3", wrapped)},
			"a SKUNotAvailable/SkuNotAvailable, b accepted, c accepted", "a b c; b c"},
		"first one, then another": {[]error{refusal(400, "BatchMachineClientError", "1 of 3", unsupported),
			refusal(400, "BatchMachineClientError", "1 of 2", unavailable.Cause{Code: "SubnetIsFull", Target: "b"})},
			"a SKUNotSupported/VMSizeNotSupported, b SubnetFull/SubnetIsFull, c accepted", "a b c; b c; c"},
		"all are wrong": {[]error{refusal(400, "BatchMachineClientError", "3 of 3", unsupported,
			unavailable.Cause{Code: "SubnetIsFull", Target: "b"}, unavailable.Cause{Code: "SkuNotAvailable", Target: "c"})},
			"a SKUNotSupported/VMSizeNotSupported, b SubnetFull/SubnetIsFull, c SKUNotAvailable/SkuNotAvailable", "a b c"},
		"a refusal that names nobody is everybody's": {[]error{refusal(400, "BatchMachineClientError", "3 of 3", unavailable.Cause{Code: "SubnetIsFull"})},
			"a CreateInstanceFailed/BatchMachineClientError, b CreateInstanceFailed/BatchMachineClientError, c CreateInstanceFailed/BatchMachineClientError", "a b c"},
		"a refusal that names a stranger is everybody's": {[]error{refusal(400, "BatchMachineClientError", "1 of 3", unavailable.Cause{Code: "SubnetIsFull", Target: "x"})},
			"a CreateInstanceFailed/BatchMachineClientError, b CreateInstanceFailed/BatchMachineClientError, c CreateInstanceFailed/BatchMachineClientError", "a b c"},
		"AKS fails, and says in JSON at whom": {[]error{refusal(500, "BatchMachineInternalServerError", string(plain))},
			"a SKUNotSupported/VMSizeNotSupported, b CreateInstanceFailed/BatchMachineInternalServerError, c CreateInstanceFailed/BatchMachineInternalServerError", "a b c"},
		"AKS fails, and says in framed JSON at whom": {[]error{refusal(500, "BatchMachineInternalServerError", string(framed))},
			"a SKUNotAvailable/SkuNotAvailable, b CreateInstanceFailed/BatchMachineInternalServerError, c CreateInstanceFailed/BatchMachineInternalServerError", "a b c"},
		"AKS fails without a word": {[]error{refusal(500, "BatchMachineInternalServerError", "An internal server error occurred.")},
			"a CreateInstanceFailed/BatchMachineInternalServerError, b CreateInstanceFailed/BatchMachineInternalServerError, c CreateInstanceFailed/BatchMachineInternalServerError", "a b c"},
		"another refusal is everybody's": {[]error{refusal(409, "OperationNotAllowed", "Family Cores quota")},
			"a FamilyQuotaReached/OperationNotAllowed, b FamilyQuotaReached/OperationNotAllowed, c FamilyQuotaReached/OperationNotAllowed", "a b c"},
	} {
		t.Run(what, func(t *testing.T) {
			inBatches(t, func(t *testing.T, w *wire, b *batcher) {
				w.answer = func(n int, _ sent) error {
					if n < len(c.answers) {
						return c.answers[n]
					}
					return nil
				}
				got := outcomes(putAll(t, b, map[string]machine{"a": alike("a", "1"), "b": alike("b", "1"), "c": alike("c", "1")}))
				if got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				var calls []string
				for _, s := range w.sent {
					calls = append(calls, names(s.batch))
				}
				if got := strings.Join(calls, "; "); got != c.sent {
					t.Errorf("asked for %s, want %s", got, c.sent)
				}
			})
		})
	}
}

func TestBatchSurvivesCanceledFirstCall(t *testing.T) {
	inBatches(t, func(t *testing.T, w *wire, b *batcher) {
		ctx, giveUp := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.put(ctx, "first", alike("first", "1")); !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v, want %v", err, context.Canceled)
			}
		})
		synctest.Wait()
		for _, name := range []string{"second", "third"} {
			wg.Go(func() {
				if err := b.put(t.Context(), name, alike(name, "1")); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		giveUp()
		wg.Wait()
		if last := w.sent[len(w.sent)-1]; names(last.batch) != "second third" {
			t.Errorf("the last call asked for %s, want second and third", names(last.batch))
		}
	})
}
