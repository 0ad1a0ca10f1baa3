// Command nap-lab is everything that makes a nap lab, in one executable: the control
// plane (etcd, kube-apiserver, kube-scheduler and kube-controller-manager,
// unmodified), and the commands that start labs, simulate Azure and its kubelets, and
// play scenarios. Users reach those as "nap lab ...".
//
//	nap-lab up|down|status|run|demo ...  the lab, see internal/cli/labcli
//	nap-lab etcd --data-dir=... --client-port=...
//	nap-lab kube-apiserver ...           flags as upstream
//	nap-lab kube-scheduler ...           flags as upstream
//	nap-lab kube-controller-manager ...  flags as upstream
//	nap-lab chart                        renders a chart of nap's, see charts.Template
//	nap-lab version
//
// The supervisor in internal/lab of the main module starts one process of this
// program per component, so that each can be killed and restarted on its own. Only
// the command that was asked for is constructed: the constructors of Kubernetes'
// commands install process-wide signal handlers and feature gates, and a second
// one in the same process panics.
//
// This folder is a Go module of its own because k8s.io/kubernetes is heavy (a
// cold build takes 4 to 10 minutes and its linker 3 GB) and needs a replace line
// for each of its staging modules, which would pin the k8s.io modules of nap as
// well. The rooms of the main module that are linked in here are compiled with this
// module's Kubernetes. Nothing outside this folder imports it; the seam is the
// command line.
//
// The version that Kubernetes reports is set by the linker; see internal/lab/binary,
// which is how the program is made.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubeversion "k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	etcdversion "go.etcd.io/etcd/api/v3/version"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/cli/labcli"
	"github.com/nodeautoprovision/nap/lab/etcd"
)

// components maps a component's name to the constructor of its command.
func components() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"etcd":                    etcd.NewCommand,
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	}
}

func main() {
	os.Exit(run(os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run dispatches to a component of the control plane or to a command of the lab, and
// returns the exit code of the process.
func run(args []string, s command.Streams) int {
	if len(args) > 0 {
		if construct, ok := components()[args[0]]; ok {
			cmd := construct()
			cmd.SetArgs(args[1:])
			return cli.Run(cmd)
		}
		if args[0] == "chart" {
			if err := charts.Template(s.In, s.Out); err != nil {
				fmt.Fprintln(s.Err, err)
				return 1
			}
			return 0
		}
		if args[0] == "version" {
			fmt.Fprintf(s.Out, "kubernetes %s\netcd v%s\n", kubeversion.Get().GitVersion, strings.TrimPrefix(etcdversion.Version, "v"))
			return 0
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the second one ends the process at once. A lab's
	// children die with it.
	context.AfterFunc(ctx, stop)
	return labcli.Main(ctx, args, s)
}
