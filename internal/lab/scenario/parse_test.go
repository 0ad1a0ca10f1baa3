package scenario

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsCommandsQuotesAndFiles(t *testing.T) {
	s, err := Parse("x",
		[]byte("# a story\nstep \"Buy it\"  # now\napply a.yaml\nwait pods app=web running=3 within 30s\n-- a.yaml --\nkind: Pod\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Commands) != 3 || s.Commands[0].Args[0] != "Buy it" || s.Commands[0].Line != 2 || len(s.Commands[0].Args) != 1 {
		t.Errorf("got %+v", s.Commands)
	}
	w, err := parseWait(s.Commands[2].Args)
	if err != nil || w.selector != "app=web" || w.want["running"] != 3 || w.within != 30*time.Second {
		t.Errorf("got %+v, %v", w, err)
	}
}

func TestParseRefusesMistakesBeforeAnythingRuns(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "no commands",
		"fly away":                          `x:1: unknown command "fly", allowed: apply, chaos, delete, expect, fault, kill, load, publish-image, resize, rollback-nap, say, scale, step, table, upgrade-kubernetes, upgrade-nap, wait, window`,
		"say \"open":                        "a quote is not closed",
		"apply missing.yaml":                "apply missing.yaml: no such file in the scenario",
		"scale deployment web many":         `replicas "many" is not a number`,
		"wait pods running=3":               "needs one of running=N, pending=N, resizing=N, and within DURATION",
		"load app=web many":                 `got "many", allowed: cpu=AMOUNT, memory=AMOUNT`,
		"resize app=web cpu=more":           `cpu: got "more"`,
		"wait ponies count=3 within 1s":     "allowed are pods, nodes, machines, claims",
		"wait machines color=red within 1s": "allowed are size, zone, priority, trouble, count, accepted",
		"wait machines size=x accepted=1 within 1s":  "accepted=N counts all of them",
		"wait machines count=1 accepted=1 within 1s": "accepted=N counts all of them",
		"wait pods running=three within 1s":          "three is not a number",
		"wait pods running=3 within sometime":        `"sometime" is not a duration`,
		"window patches open":                        `window "patches": allowed are node-images, kubernetes`,
		"window kubernetes ajar":                     `window kubernetes "ajar": allowed are open, closed, none`,
		"upgrade-nap LOG_LEVEL":                      `"LOG_LEVEL" is not NAME=VALUE`,
		"step":                                       "step needs at least 1 words, got 0",
	} {
		if _, err := Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestParseChaos(t *testing.T) {
	p, err := parseChaos(strings.Fields("kill controller times=10 every=1s..3s seed=7"))
	if err != nil || p != (plan{"controller", 10, time.Second, 3 * time.Second, 7}) {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, bad := range []string{"kill", "kill controller", "kill controller times=0 every=1s..2s", "kill controller times=1 every=3s..2s", "kill controller speed=1"} {
		if _, err := parseChaos(strings.Fields(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseBuiltInStories(t *testing.T) {
	for _, name := range Stories() {
		if _, err := Story(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := Story("nothing"); err == nil || !strings.Contains(err.Error(), "there are: bill, boot-failure, chaos, consolidate-killed, consolidate, daemonset, demo, eviction, hpa, image, keda, leader, machines, nap-upgrade, overlays, resize, rights, short, shrink, static, thousand") {
		t.Errorf("got %v", err)
	}
}

func TestPageOfScenariosHasEveryVerb(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([\\w-]+)[ `]").FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, m[1])
	}
	slices.Sort(rows)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(arity())), slices.Compact(rows)); diff != "" {
		t.Errorf("docs/scenarios.md (-verbs +rows):\n%s", diff)
	}
}
