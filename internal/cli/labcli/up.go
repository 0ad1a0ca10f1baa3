package labcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// upOptions are the flags of "nap lab up".
type upOptions struct {
	dir    string
	nodes  int
	detach bool
	engine string
	// profiles is a file with the scheduler's profiles; empty for the default one alone.
	profiles string
	// kubernetes is the control plane's minor version; empty for the folder's or the latest.
	kubernetes string
	// nodeMonitorGracePeriod is how long a node may be silent.
	nodeMonitorGracePeriod time.Duration
	azure                  cloud.Options
}

// addFlags defines the flags, with the defaults of the fixed pool's size and of the
// provision mode; an empty mode leaves it to nap.
func (o *upOptions) addFlags(fs *pflag.FlagSet, nodes int, mode string) {
	fs.IntVar(&o.nodes, "nodes", nodes, "size of the fixed agent pool")
	fs.StringVar(&o.engine, "engine", cloud.Engines()[0], "who decides what to buy: nap, karpenter, or none for a lab without a controller")
	fs.Float64Var(&o.azure.Speed, "speed", cloud.DefaultSpeed, "how many times faster than the real one the simulated Azure is")
	fs.StringVar(&o.azure.Region, "region", "eastus", "region of the simulated Azure")
	fs.StringVar(&o.azure.Network, "network", armsim.Networks()[0],
		"network of a new lab's cluster: "+strings.Join(armsim.Networks(), ", "))
	fs.StringVar(&o.azure.Outbound, "outbound", armsim.Outbounds()[0],
		"how the nodes of a new lab's cluster reach the internet: "+strings.Join(armsim.Outbounds(), ", "))
	unset := "default: nap chooses"
	if mode != "" {
		unset = "default: nap's own virtual machines"
	}
	fs.StringVar(&o.azure.ProvisionMode, "provision-mode", mode,
		"how machines are made, see docs/machines.md: "+strings.Join(cloud.ProvisionModes(), ", ")+"; "+unset)
	fs.IntVar(&o.azure.Replicas, "replicas", 1, "replicas of nap's Deployment; with one it acts without a lease")
	fs.StringVar(&o.azure.Release, "release", cloud.Releases()[0],
		"what nap is installed as: nap in namespace nap-system, or karpenter in kube-system with Karpenter's names and plain metrics")
	pools := "Auto"
	if nodes == 0 {
		pools = "None" // for a story, which brings its own
	}
	fs.StringVar(&o.azure.DefaultNodePools, "default-node-pools", pools,
		"whether nap makes the NodePools default and system-surge: Auto or None")
	fs.StringVar(&o.kubernetes, "kubernetes", "",
		"minor version of a new lab's control plane, as 1.36: the program's own, or one of the three before; nap lab upgrade raises it")
	fs.StringVar(&o.profiles, "scheduler-profiles", "",
		"a file with a KubeSchedulerConfiguration, whose profiles the scheduler has; default: its default profile alone")
	fs.DurationVar(&o.nodeMonitorGracePeriod, "node-monitor-grace-period", lab.DefaultNodeMonitorGracePeriod,
		"how long a node may leave its lease without renewal before the control plane takes it for lost, at least 20s")
	fs.Uint64Var(&o.azure.Seed, "seed", 0, "seed of the simulated Azure's random delays and failures")
}

// args are the flags as they are typed.
func (o *upOptions) args() []string {
	return []string{
		"--dir", o.dir, "--nodes", strconv.Itoa(o.nodes), "--engine", o.engine,
		"--speed", strconv.FormatFloat(o.azure.Speed, 'g', -1, 64), "--region", o.azure.Region,
		"--replicas", strconv.Itoa(o.azure.Replicas), "--release", o.azure.Release,
		"--network", o.azure.Network, "--outbound", o.azure.Outbound,
		"--provision-mode", o.azure.ProvisionMode, "--default-node-pools", o.azure.DefaultNodePools,
		"--kubernetes", o.kubernetes, "--scheduler-profiles", o.profiles,
		"--node-monitor-grace-period", o.nodeMonitorGracePeriod.String(), "--seed", strconv.FormatUint(o.azure.Seed, 10),
	}
}

// config says what the lab consists of.
func (o upOptions) config(binary string, progress func(string)) (lab.Config, error) {
	cfg := lab.Config{
		Dir: o.dir, Binary: binary, Nodes: o.nodes, Kubernetes: o.kubernetes, Progress: progress,
		NodeMonitorGracePeriod: o.nodeMonitorGracePeriod,
	}
	if o.profiles != "" {
		var err error
		if cfg.Profiles, err = os.ReadFile(o.profiles); err != nil {
			return cfg, fmt.Errorf("--scheduler-profiles: %w", err)
		}
	}
	return cloud.Complete(cfg, o.azure, o.engine)
}

func newLabUp(s command.Streams, dir *string) *cobra.Command {
	o := upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab",
		Long: `Start the lab, say how to use it, and run it until Ctrl-C. With --detach it runs
in the background until "nap lab down". A lab that was stopped or killed
continues with its data.

The first time in a checkout, nap-lab is built, which takes minutes.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.dir = *dir
			return labUp(cmd.Context(), s, o)
		},
	}
	o.addFlags(cmd.Flags(), 1, "")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "return once the lab is ready, and leave it running")
	return cmd
}

func labUp(ctx context.Context, s command.Streams, o upOptions) error {
	if running, err := alreadyRunning(s, o); running || err != nil {
		return err
	}
	// What is wrong with the flags is said before anything is built or started.
	planned, err := o.config("", nil)
	if err != nil {
		return err
	}
	if err := planned.Validate(); err != nil {
		return err
	}
	binary, err := os.Executable() // the control plane's components and the charts are in it
	if err != nil {
		return fmt.Errorf("find the lab's own executable: %w", err)
	}
	if err := cloud.Check(ctx, binary, o.azure, o.engine); err != nil {
		return err
	}
	if o.detach {
		return labUpDetached(ctx, s, o)
	}
	progress := func(line string) { fmt.Fprintln(s.Err, line) }
	cfg, err := o.config(binary, progress)
	if err != nil {
		return err
	}
	l, err := lab.New(cfg)
	if err != nil {
		return err
	}
	// Run returns after ready, or instead of it.
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("the lab was stopped before it was ready")
		}
		return runError(err, o)
	case <-l.Ready():
	}
	if err := printReady(s, o.dir); err != nil {
		return err
	}
	if command.IsTerminal(s.Err) {
		fmt.Fprintln(s.Err, "press Ctrl-C to stop the lab")
	}
	return <-ended
}

func runError(err error, o upOptions) error {
	if errors.Is(err, lab.ErrRunning) {
		return fmt.Errorf("another process is starting or stopping the lab in %s; look at it with: nap lab status%s", o.dir, lab.DirFlag(o.dir))
	}
	return err
}

// labUpDetached starts the same command in the background.
func labUpDetached(ctx context.Context, s command.Streams, o upOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the lab's own executable: %w", err)
	}
	// Who reads the messages may end before, as head does. That must not end this process,
	// for it stops the lab which would else be left half started.
	signal.Ignore(syscall.SIGPIPE)
	// Not bound to ctx: it is to live on.
	cmd := exec.Command(self, append([]string{"up"}, o.args()...)...)
	if err := lab.Detach(ctx, o.dir, cmd, s.Err); err != nil {
		return err
	}
	return printReady(s, o.dir)
}

// alreadyRunning looks whether there is a lab already. One that is ready is as
// good as a new one, and is described like one.
func alreadyRunning(s command.Streams, o upOptions) (bool, error) {
	state, err := lab.Inspect(o.dir)
	if errors.Is(err, lab.ErrNoLab) {
		return false, nil
	}
	if err != nil || !state.Supervisor.Alive() {
		return false, err
	}
	switch {
	case state.Phase == lab.PhaseReady && !state.Healthy():
		return true, fmt.Errorf("the lab in %s runs, but not all of it is ready; look at it with: nap lab status%s", o.dir, lab.DirFlag(o.dir))
	case state.Phase != lab.PhaseReady:
		return true, fmt.Errorf("the lab in %s is %s (pid %d); look at it with: nap lab status%s",
			o.dir, state.Phase, state.Supervisor.PID, lab.DirFlag(o.dir))
	}
	fmt.Fprintf(s.Err, "the lab in %s is running already (pid %d, %d nodes)\n", o.dir, state.Supervisor.PID, state.Nodes)
	return true, printReady(s, o.dir)
}

// printReady says how to use a lab that is ready.
func printReady(s command.Streams, dir string) error {
	state, err := lab.Inspect(dir)
	if err != nil {
		return err
	}
	took := state.ReadyAt.Sub(state.StartedAt).Round(100 * time.Millisecond)
	flag := lab.DirFlag(dir)
	_, err = fmt.Fprintf(s.Out, `Kubernetes %s is ready at %s (after %s)

  export KUBECONFIG=%s
  kubectl get nodes,pods -A

  nap lab status%s
  nap lab logs kube-scheduler -f%s
  nap lab down%s
`, cmp.Or(state.Served, state.KubernetesVersion), state.Server, took, state.Kubeconfig, flag, flag, flag)
	return err
}
