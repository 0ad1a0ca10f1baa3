package labcli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// What runs in the background is the same command: a flag that is not handed on would do
// nothing there.
func TestDetachedLabGetsEveryFlag(t *testing.T) {
	typed := []string{
		"--nodes=7", "--engine=none", "--speed=3", "--region=westeurope", "--network=byo", "--outbound=none", "--provision-mode=AKSMachine",
		"--replicas=2", "--release=karpenter", "--default-node-pools=None", "--kubernetes=1.36", "--scheduler-profiles=file",
		"--node-monitor-grace-period=3m", "--seed=9",
	}
	parse := func(args []string) (upOptions, *pflag.FlagSet) {
		var o upOptions
		fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
		fs.StringVar(&o.dir, "dir", "", "")
		o.addFlags(fs, 1, "")
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return o, fs
	}
	want, flags := parse(append(typed, "--dir=x"))
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			t.Errorf("this test does not set --%s", f.Name)
		}
	})
	got, _ := parse(want.args())
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(upOptions{})); diff != "" {
		t.Errorf("flags of the lab in the background (-want +got):\n%s", diff)
	}
}
