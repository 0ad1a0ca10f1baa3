// Command nap-lab is the control plane of a nap lab: etcd, kube-apiserver,
// kube-scheduler and kube-controller-manager, unmodified, in one executable.
//
//	nap-lab etcd --data-dir=... --client-port=...
//	nap-lab kube-apiserver ...           flags as upstream
//	nap-lab kube-scheduler ...           flags as upstream
//	nap-lab kube-controller-manager ...  flags as upstream
//	nap-lab version
//
// The supervisor in internal/lab of the main module starts one process per
// component, so that each can be killed and restarted on its own. Only the
// command that was asked for is constructed: the constructors of Kubernetes'
// commands install process-wide signal handlers and feature gates, and a second
// one in the same process panics.
//
// This folder is a Go module of its own because k8s.io/kubernetes is heavy (a
// cold build takes about 7 minutes and its linker 3 GB) and needs a replace line
// for each of its staging modules, which would pin the k8s.io modules of nap as
// well. Nothing outside this folder imports it; the seam is the command line.
//
// The version that Kubernetes reports is set by the linker; see "nap lab build",
// which is how the binary is made.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubeversion "k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	etcdversion "go.etcd.io/etcd/api/v3/version"

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

const usage = "usage: nap-lab etcd|kube-apiserver|kube-scheduler|kube-controller-manager|version [flags]"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run dispatches to a component and returns the exit code of the process.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	name, rest := args[0], args[1:]
	if name == "version" {
		fmt.Fprintf(stdout, "kubernetes %s\netcd v%s\n", kubeversion.Get().GitVersion, strings.TrimPrefix(etcdversion.Version, "v"))
		return 0
	}
	construct, ok := components()[name]
	if !ok {
		fmt.Fprintf(stderr, "nap-lab: unknown component %q\n%s\n", name, usage)
		return 2
	}
	cmd := construct()
	cmd.SetArgs(rest)
	return cli.Run(cmd)
}
