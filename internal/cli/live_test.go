package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/ledger"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// noon is the time of the scripts with a live cluster.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// TestLiveScripts runs the scripts of testdata/live: commands on a live cluster, which is
// an API server in this process. A script has, beside "nap CODE ARGS...":
//
//	cluster FILE [FORBIDDEN...]	start an API server with the objects of the file, and let
//					KUBECONFIG point to it; some kinds may not be read
//	snapshot FILE			publish a document in it as the controller does
//	ledger FILE			write a page of the ledger into it
//	shadow FILE			write the record of a shadow into it
//	patches				write to stdout what was written to the cluster
//
// It is always noon there.
func TestLiveScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/live",
		UpdateScripts: *rewrite,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", "../../docs/examples")
			e.Values[serverKey{}] = new(*clitest.APIServer)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nap": liveNap(t), "cluster": startCluster(t), "snapshot": publish(t), "ledger": writeLedger, "shadow": writeShadowRecord,
			"patches": func(ts *testscript.TestScript, _ bool, _ []string) {
				for _, p := range (*serverOf(ts)).Patches() {
					fmt.Fprintln(ts.Stdout(), p)
				}
			},
		},
	})
}

type serverKey struct{}

func serverOf(ts *testscript.TestScript) **clitest.APIServer {
	return ts.Value(serverKey{}).(**clitest.APIServer)
}

func startCluster(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		server, kubeconfig := clitest.NewAPIServer(t, ts.MkAbs("."), []byte(ts.ReadFile(args[0])), args[1:]...)
		*serverOf(ts) = server
		ts.Setenv("KUBECONFIG", kubeconfig)
	}
}

// fitting are the commands whose output without -o fits a screen of 80 columns.
var fitting = []string{"status", "get", "plan", "what-if", "diff", "ledger", "shadow"}

// oneAtATime lets one script run nap after the other: each has its own KUBECONFIG.
var oneAtATime sync.Mutex

// liveNap runs nap at noon, with the script's kubeconfig.
func liveNap(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		args = args[1:]
		for i, a := range args {
			if strings.HasSuffix(a, ".yaml") || strings.HasSuffix(a, ".json") {
				args[i] = ts.MkAbs(a)
			}
		}
		oneAtATime.Lock()
		defer oneAtATime.Unlock()
		t.Setenv("KUBECONFIG", ts.Getenv("KUBECONFIG"))
		var out, errs bytes.Buffer
		s := command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
		code := command.Run(t.Context(), newRoot("test", s, func() time.Time { return noon }), args, s)
		fmt.Fprint(ts.Stdout(), steady(out.String(), ts))
		fmt.Fprint(ts.Stderr(), steady(errs.String(), ts))
		if lines := strings.Split(out.String(), "\n"); code == want && slices.Contains(fitting, args[0]) && !slices.Contains(args, "-o") {
			for _, line := range lines {
				if n := len([]rune(line)); n > screenColumns {
					ts.Fatalf("a line has %d columns: %s", n, line)
				}
			}
			if args[0] == "status" && len(lines) > 25 {
				ts.Fatalf("the screen has %d lines", len(lines)-1)
			}
		}
		if code != want {
			ts.Fatalf("nap %s ended with exit code %d, want %d", strings.Join(args, " "), code, want)
		}
	}
}

// publish writes a snapshot.Document of a file into the cluster, as the controller does.
func publish(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(addSnapshot(t.Context(), *serverOf(ts), []byte(ts.ReadFile(args[0]))))
	}
}

// addSnapshot writes a snapshot.Document into a cluster, as the controller does.
func addSnapshot(ctx context.Context, server *clitest.APIServer, text []byte) error {
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		return err
	}
	kube := fake.NewClientBuilder().WithScheme(known).Build()
	publisher := &snapshot.Publisher{
		Reader: kube, Writer: kube, Clock: clock.RealClock{},
		Collect: func(_ context.Context, d *snapshot.Document) error { return yaml.Unmarshal(text, d) },
	}
	ctx, cancel := context.WithCancel(log.IntoContext(ctx, logr.Discard()))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- publisher.Start(ctx) }()
	var head v1alpha1.SnapshotList
	for len(head.Items) == 0 {
		if err := kube.List(ctx, &head); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	var shards v1alpha1.SnapshotShardList
	if err := kube.List(ctx, &shards); err != nil {
		return err
	}
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	head.Items[0].Status.Written.Time = noon.Add(-3 * time.Second)
	head.Items[0].APIVersion, head.Items[0].Kind = "nap.azure.com/v1alpha1", "Snapshot"
	if err := addTo(server, &head.Items[0]); err != nil {
		return err
	}
	for i := range shards.Items {
		shards.Items[i].APIVersion, shards.Items[i].Kind = "nap.azure.com/v1alpha1", "SnapshotShard"
		if err := addTo(server, &shards.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeLedger writes a ledger.Book of a file into the cluster.
func writeLedger(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(addLedger(*serverOf(ts), []byte(ts.ReadFile(args[0]))))
}

// addLedger writes a ledger.Book into a cluster, as the page of its day.
func addLedger(server *clitest.APIServer, text []byte) error {
	book := &ledger.Book{}
	if err := yaml.Unmarshal(text, book); err != nil {
		return err
	}
	data, err := book.Pack()
	if err != nil {
		return err
	}
	page := &v1alpha1.LedgerPage{Form: ledger.Form, Day: book.Day, Data: data}
	page.APIVersion, page.Kind, page.Name = "nap.azure.com/v1alpha1", "LedgerPage", v1alpha1.LedgerName
	return addTo(server, page)
}

// writeShadowRecord writes a shadow.Record of a file into the cluster.
func writeShadowRecord(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(addShadow(*serverOf(ts), []byte(ts.ReadFile(args[0]))))
}

// addShadow writes a shadow.Record into a cluster.
func addShadow(server *clitest.APIServer, text []byte) error {
	record := &shadow.Record{}
	if err := yaml.Unmarshal(text, record); err != nil {
		return err
	}
	data, err := record.Pack()
	if err != nil {
		return err
	}
	report := &v1alpha1.ShadowReport{Form: shadow.Form, Data: data}
	report.APIVersion, report.Kind, report.Name = "nap.azure.com/v1alpha1", "ShadowReport", v1alpha1.ShadowReportName
	return addTo(server, report)
}

func addTo(server *clitest.APIServer, object any) error {
	text, err := json.Marshal(object)
	o := &unstructured.Unstructured{}
	if err == nil {
		err = json.Unmarshal(text, &o.Object)
	}
	if err == nil {
		server.Add(o)
	}
	return err
}
