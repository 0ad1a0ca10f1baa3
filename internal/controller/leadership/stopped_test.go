//go:build unix

package leadership_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/leadership"
)

// These tests stop real processes. The test program starts itself as the controllers
// that compete for the lease of one API server, of which only what they need is there.

// election is Karpenter's, ten times as fast.
func election() leadership.Election {
	return leadership.Election{LeaseDuration: 1500 * time.Millisecond, RenewDeadline: time.Second, RetryPeriod: 200 * time.Millisecond}
}

const (
	serverVariable, nameVariable = "NAP_TEST_LEADER_SERVER", "NAP_TEST_LEADER_NAME"
	roundsVariable               = "NAP_LEADERS_ROUNDS"
	// writeEvery is how often a leader writes.
	writeEvery = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	if server := os.Getenv(serverVariable); server != "" {
		if err := lead(server, os.Getenv(nameVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // the kubelet starts it again
	}
	os.Exit(m.Run())
}

// lead is a controller: nap's manager, and a loop that writes to the API server and to
// Azure while the manager says that it leads.
func lead(server, name string) error {
	silent := funcr.New(func(string, string) {}, funcr.Options{})
	ctx := karpenter.WithOptions(context.Background(), &options.Options{
		LeaderElectionName: "nap", LeaderElectionNamespace: "default", KubeClientQPS: 100, KubeClientBurst: 100,
	}, silent)
	lease := leadership.NewLease(election())
	mgr, err := karpenter.NewManager(ctx, karpenter.ManagerConfig{
		REST: &rest.Config{Host: server}, Logger: silent, MetricsBindAddress: "0", HealthProbeBindAddress: "0",
		ShutdownTimeout: time.Second, Election: election(), Lease: lease,
	})
	if err != nil {
		return err
	}
	azure := runtime.NewPipeline("nap", "test", runtime.PipelineOptions{PerRetry: []policy.Policy{ratelimit.Guard(lease.Held)}},
		&policy.ClientOptions{})
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for n := 0; ; n++ {
			// What fails is tried again, as nap's loops do.
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, n)}}
			_ = mgr.GetClient().Create(ctx, claim)
			if req, err := runtime.NewRequest(ctx, http.MethodPut, server+"/azure"); err == nil {
				if answer, err := azure.Do(req); err == nil {
					_ = answer.Body.Close()
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(writeEvery):
			}
		}
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// apiServer keeps one lease and judges who writes.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	lease *coordinationv1.Lease
	// holder is the controller that holds the lease by its last renewal, at renewed.
	holder  string
	renewed time.Time
	// wrote has the writes of the controllers by path, last the time of the last one to
	// Azure, with which a turn of the loop ends. wrong are writes without the lease.
	wrote map[string]int
	last  map[string]time.Time
	wrong []string
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{wrote: map[string]int{}, last: map[string]time.Time{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/") // each has a way of its own to the server
	path = "/" + path
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(path, "/leases"):
		s.serveLease(w, r, who)
	case strings.HasSuffix(path, "/nodeclaims") && r.Method == http.MethodPost:
		s.judge(who, "nodeclaims")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	case path == "/azure":
		s.judge(who, "azure")
		s.last[who] = time.Now()
	case kinds[path] != nil:
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
		list.GroupVersion = strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
		for _, kind := range kinds[path] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
		}
		reply(w, http.StatusOK, list)
	case path == "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case path == "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range []string{"karpenter.sh", "storage.k8s.io"} {
			version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
			groups.Groups = append(groups.Groups, metav1.APIGroup{
				Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			})
		}
		reply(w, http.StatusOK, groups)
	case r.Method == http.MethodGet && r.URL.Query().Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid) // then it lists
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.mu.Unlock()
		<-r.Context().Done() // nothing ever happens
		s.mu.Lock()
	case r.Method == http.MethodGet:
		list := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{}}
		for at, of := range kinds {
			for _, kind := range of {
				if path == at+"/"+strings.ToLower(kind)+"s" {
					list.Kind, list.APIVersion = kind+"List", strings.TrimPrefix(strings.TrimPrefix(at, "/apis/"), "/api/")
				}
			}
		}
		reply(w, http.StatusOK, list)
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// kinds are what nap's manager indexes, by where they are listed.
var kinds = map[string][]string{
	"/api/v1": {"Pod", "Node"}, "/apis/karpenter.sh/v1": {"NodeClaim", "NodePool"}, "/apis/storage.k8s.io/v1": {"VolumeAttachment"},
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	reply(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: code,
	})
}

func reply(w http.ResponseWriter, status int, o any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o)
}

// judge: a controller writes only while it holds the lease, and has renewed it.
func (s *apiServer) judge(who, what string) {
	s.wrote[who+" "+what]++
	if age := time.Since(s.renewed); who != s.holder || age > election().LeaseDuration {
		s.wrong = append(s.wrong, fmt.Sprintf("%s writes %s while %s holds the lease, renewed %s ago",
			who, what, s.holder, age.Round(time.Millisecond)))
	}
}

func (s *apiServer) serveLease(w http.ResponseWriter, r *http.Request, who string) {
	if r.Method == http.MethodGet {
		if s.lease == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		reply(w, http.StatusOK, s.lease)
		return
	}
	var lease coordinationv1.Lease
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	version := 0
	if s.lease != nil {
		if lease.ResourceVersion != s.lease.ResourceVersion {
			refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		version, _ = strconv.Atoi(s.lease.ResourceVersion)
	}
	lease.ResourceVersion = strconv.Itoa(version + 1)
	lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	s.lease, s.holder, s.renewed = &lease, "", time.Now()
	if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		s.holder = who
	}
	reply(w, http.StatusOK, &lease)
}

// state reads the server: the holder, how often it has written, and whether its last
// turn ended just now, so that it sleeps.
func (s *apiServer) state() (holder string, writes int, asleep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ago := time.Since(s.last[s.holder])
	return s.holder, s.wrote[s.holder+" nodeclaims"], ago > writeEvery/10 && ago < writeEvery/2
}

// controllers keeps two controllers running, as the kubelet does.
type controllers struct {
	t      *testing.T
	server *apiServer
	mu     sync.Mutex
	runs   map[string]*exec.Cmd
	ends   bool
}

func (c *controllers) start(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends {
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+c.server.URL+"/"+name, nameVariable+"="+name)
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	c.runs[name] = cmd
	go func() {
		_ = cmd.Wait()
		c.start(name)
	}()
}

func (c *controllers) signal(name string, s syscall.Signal) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.runs[name].Process.Signal(s); err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
}

func (c *controllers) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = true
	for _, cmd := range c.runs {
		_ = cmd.Process.Kill()
	}
}

// eventually waits for something and fails the test when it does not come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// The leader is stopped between two writes until the other one leads, and goes on. It
// must not write before it has renewed its lease, to the API server nor to Azure. Set
// NAP_LEADERS_ROUNDS for more rounds.
func TestStoppedLeaderWritesNothingWhenItWakes(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv(roundsVariable)); err == nil {
		rounds = n
	}
	s := newAPIServer(t)
	c := &controllers{t: t, server: s, runs: map[string]*exec.Cmd{}}
	t.Cleanup(c.stop)
	c.start("a")
	c.start("b")
	for round := range rounds {
		old := ""
		eventually(t, "a leader that writes, and sleeps", func() bool {
			holder, writes, asleep := s.state()
			old = holder
			return holder != "" && writes > 0 && asleep
		})
		c.signal(old, syscall.SIGSTOP)
		eventually(t, "the other one to lead and write", func() bool {
			holder, writes, _ := s.state()
			return holder != old && holder != "" && writes > 0
		})
		c.signal(old, syscall.SIGCONT)
		time.Sleep(10 * writeEvery) // it would write ten times
		s.mu.Lock()
		wrong := s.wrong
		s.wrote, s.wrong = map[string]int{}, nil
		s.mu.Unlock()
		if len(wrong) > 0 {
			t.Fatalf("round %d: %q", round+1, wrong)
		}
	}
}

// A leader that wakes before anyone else has taken its lease renews it and goes on.
func TestStoppedLeaderGoesOnOnceItHasRenewed(t *testing.T) {
	s := newAPIServer(t)
	c := &controllers{t: t, server: s, runs: map[string]*exec.Cmd{}}
	t.Cleanup(c.stop)
	c.start("a")
	eventually(t, "a leader that writes, and sleeps", func() bool {
		holder, writes, asleep := s.state()
		return holder == "a" && writes > 0 && asleep
	})
	c.signal("a", syscall.SIGSTOP)
	time.Sleep(2 * election().LeaseDuration)
	s.mu.Lock()
	s.wrote = map[string]int{}
	s.mu.Unlock()
	c.signal("a", syscall.SIGCONT)
	eventually(t, "the leader to write again", func() bool { _, writes, _ := s.state(); return writes > 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) > 0 {
		t.Errorf("it wrote before it had renewed its lease: %q", s.wrong)
	}
}
