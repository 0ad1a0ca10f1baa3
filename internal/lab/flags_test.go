package lab

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

func TestCommandLinesOfTheComponents(t *testing.T) {
	ports := map[string]int{Etcd: 2379, APIServer: 6443, Scheduler: 10259, ControllerManager: 10257}
	for _, name := range components() {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(componentArgs("/lab", name, ports), "\n") + "\n"
			golden := filepath.Join("testdata", "flags", name+".txt")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("command line differs from %s, see -rewrite (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestFlagsListenOnLoopbackOnly(t *testing.T) {
	for _, name := range []string{APIServer, Scheduler, ControllerManager} {
		if args := componentArgs("/lab", name, nil); !slices.Contains(args, "--bind-address=127.0.0.1") {
			t.Errorf("%s is not bound to loopback: %v", name, args)
		}
	}
}

func TestControllerManagerIsToldHowLongNodesMayBeSilent(t *testing.T) {
	for given, want := range map[time.Duration]string{0: "50s", 3 * time.Minute: "3m0s"} {
		l, err := New(Config{Dir: t.TempDir(), Binary: "nap-lab", NodeMonitorGracePeriod: given})
		if err != nil {
			t.Fatal(err)
		}
		if args := l.args(ControllerManager); !slices.Contains(args, "--node-monitor-grace-period="+want) {
			t.Errorf("given %s: the command line is %v, want %s", given, args, want)
		}
	}
}
