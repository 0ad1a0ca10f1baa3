package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/controller/preflight"
)

func TestStartUpLogsAreAtDebugLevel(t *testing.T) {
	for verbosity, want := range map[int]int{0: 1, 1: 4} {
		var lines []string
		sink := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: verbosity}).GetSink()
		log := logr.New(quietSink{sink}).WithName("controller").WithValues("controller", "nodepool.hash")
		log.Info("Starting EventSource")
		log.Info("Starting Controller")
		log.Info("Starting workers")
		log.Info("deleted nodeclaim")
		if len(lines) != want || !strings.Contains(lines[len(lines)-1], "deleted nodeclaim") {
			t.Errorf("verbosity %d: got %q, want %d lines", verbosity, lines, want)
		}
	}
}

// A replica without the lease does not claim as its own what another one has done.
func TestResultsWithoutLeaseAreDoubted(t *testing.T) {
	var lines []string
	var held error
	sink := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}).GetSink()
	log := logr.New(doubtfulSink{sink, func() error { return held }}).WithName("disruption").WithValues("command", "c1")
	log.Info("removed nodes", "evictions", 2)
	held = errors.New("not held")
	log.Info("removed nodes", "evictions", 2)
	log.Info("launched nodeclaim")
	log.Info("planned")
	for i, doubted := range []bool{false, true, true, false} {
		if got := strings.Contains(lines[i], `"doubt"="this replica does not hold the lease`); got != doubted || i < 2 && !strings.Contains(lines[i], `"evictions"=2`) {
			t.Errorf("line %d: %s, doubted %t, want %t", i, lines[i], got, doubted)
		}
	}
}

// countingSink counts how often a logger with values is made of it.
type countingSink struct {
	logr.LogSink
	made *int
}

func (c countingSink) WithValues(keysAndValues ...any) logr.LogSink {
	*c.made++
	return c.LogSink.WithValues(keysAndValues...)
}

func TestValuesAreFormattedOnlyForLines(t *testing.T) {
	var lines []string
	made := 0
	inner := funcr.New(func(name, args string) { lines = append(lines, name+": "+args) }, funcr.Options{}).GetSink()
	log := logr.New(lateValues{LogSink: countingSink{inner, &made}}).WithName("controller").WithValues("controller", "nodepool.hash")
	first, second := log.WithValues("name", "first"), log.WithValues("name", "second", "zone", 1)
	first.Info("deleted", "after", 3)
	second.Error(errors.New("refused"), "not deleted")
	want := []string{
		`controller: "level"=0 "msg"="deleted" "controller"="nodepool.hash" "name"="first" "after"=3`,
		`controller: "msg"="not deleted" "error"="refused" "controller"="nodepool.hash" "name"="second" "zone"=1`,
	}
	if !slices.Equal(lines, want) || made > 0 {
		t.Errorf("got %q with %d loggers made, want %q with none", lines, made, want)
	}
}

// resources are what a cluster is asked for, as "plural.group".
func resources(w preflight.Wants) []string {
	var out []string
	for _, r := range w.Resources {
		out = append(out, r.Resource+"."+r.Group)
	}
	slices.Sort(out)
	return out
}

func TestFeatureGateRequiresResourcesAndPermissions(t *testing.T) {
	base, err := wants(DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(resources(base)),
		"[aksnodeclasses.karpenter.azure.com ledgerpages.nap.azure.com nodeautoprovisionings.nap.azure.com nodeclaims.karpenter.sh nodepools.karpenter.sh "+
			"snapshots.nap.azure.com snapshotshards.nap.azure.com]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for gate, resource := range map[string]string{
		"NodeOverlay": "nodeoverlays.karpenter.sh", "PodDeletionCostManagement": "nodepools.karpenter.sh", "CapacityBuffer": "capacitybuffers.autoscaling.x-k8s.io",
	} {
		o := DefaultOptions()
		if o.FeatureGates, err = ParseGates(gate + "=true"); err != nil {
			t.Fatal(err)
		}
		with, err := wants(o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(resources(with), resource) || len(with.Permissions) <= len(base.Permissions) {
			t.Errorf("%s: asks for %v and %d permissions", gate, resources(with), len(with.Permissions))
		}
	}
}

func TestLeasePermissionsOnlyWithLeaderElection(t *testing.T) {
	o := DefaultOptions()
	o.LeaderElectionNamespace = "nap"
	for disabled, want := range map[bool]bool{false: true, true: false} {
		o.DisableLeaderElection = disabled
		w, err := wants(o)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, p := range w.Permissions {
			got = got || p.Resource == "leases" && p.Namespace == "nap"
		}
		if got != want {
			t.Errorf("leader election disabled %v: asks for leases %v", disabled, got)
		}
	}
}

func TestKarpenterOptionsAreSet(t *testing.T) {
	o := DefaultOptions()
	o.KubeClientQPS, o.CPURequests, o.PreferencePolicy = 7, 2000, "Ignore"
	got := o.karpenter()
	if got.KubeClientQPS != 7 || got.CPURequests != 2000 || got.PreferencePolicy != "Ignore" ||
		got.BatchMaxDuration != o.BatchMaxDuration || got.FeatureGates.ReservedCapacity != o.FeatureGates.ReservedCapacity {
		t.Errorf("got %+v", got)
	}
}

// Karpenter's disruption loop, which repairs nodes since 1.15, does not run beside nap's.
func TestNapRepairsOutsideOfKarpentersDisruption(t *testing.T) {
	for _, row := range []struct {
		engine       Engine
		legacy, want bool
	}{{EngineNap, false, true}, {EngineNap, true, true}, {EngineKarpenter, false, false}, {EngineKarpenter, true, true}} {
		o := DefaultOptions()
		o.Engine, o.LegacyNodeRepair = row.engine, row.legacy
		if got := o.karpenter().LegacyNodeRepair; got != row.want {
			t.Errorf("engine %s with --legacy-node-repair=%t: the controller of its own runs %t, want %t", row.engine, row.legacy, got, row.want)
		}
	}
}

func TestEveryGateOfKarpenterIsKnown(t *testing.T) {
	gates := Gates()
	for name := range gates {
		parsed, err := ParseGates(name + "=true")
		if err != nil || !strings.Contains(fmt.Sprintf("%+v", parsed), name+":true") {
			t.Errorf("gate %s: %+v, %v", name, parsed, err)
		}
	}
	if want := reflect.TypeFor[options.FeatureGates]().NumField() - 1; len(gates) != want { // one field is the text
		t.Errorf("%d gates, Karpenter has %d", len(gates), want)
	}
}

func TestMarketWatchWakesLoopOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var market, woken atomic.Uint64
		var last atomic.Pointer[time.Time]
		watch := &marketWatch{market: market.Load, clock: clock.RealClock{}, changed: func() { last.Store(new(time.Now())); woken.Add(1) }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- watch.Start(ctx) }()
		time.Sleep(10 * time.Second)
		if n := woken.Load(); n != 0 {
			t.Errorf("woken %d times although nothing has changed", n)
		}
		for range 5 {
			time.Sleep(1234 * time.Millisecond)
			market.Add(1)
			changed := time.Now()
			time.Sleep(time.Second)
			if at := last.Load(); at == nil || at.Before(changed) || at.Sub(changed) > time.Second {
				t.Errorf("woken at %v by the change at %v, want within a second", at, changed)
			}
		}
		if n := woken.Load(); n != 5 {
			t.Errorf("woken %d times by 5 changes", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
