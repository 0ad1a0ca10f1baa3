// Package lab runs a real Kubernetes control plane on this machine, without
// containers: etcd, kube-apiserver, kube-scheduler and kube-controller-manager
// as child processes of one supervisor, everything on 127.0.0.1 and everything
// on disk in one folder.
//
//	l, err := lab.New(lab.Config{Dir: ".lab", Binary: binary})
//	err = l.Run(ctx)         // blocks: starts, becomes ready, supervises, stops with ctx
//
//	lab.Inspect(ctx, dir)    // what runs there, from any process
//	lab.Restart(ctx, dir, "kube-scheduler")
//	lab.Down(ctx, dir)
//
// # What is supervised
//
// A part is one supervised thing. There are three kinds: the four components of
// the control plane (children made from the nap-lab binary, see the module in
// lab/), services (Go values that run inside the supervisor's process, such as
// the simulated Azure) and processes (children that services start, such as the
// controller). They start in that order and stop in the reverse one.
// A part that ends while the lab starts ends the start with its name and its
// last log lines; one that ends later is started again, with a pause that
// doubles from 1 s to 10 s.
//
// # Nothing is left behind
//
// Every child is in a process group of its own, so that Ctrl-C reaches only the
// supervisor, and has SIGKILL as its parent-death signal, so that it dies with
// the supervisor however that dies. A folder whose supervisor was killed is
// simply used again: the next Run ends what is left of the old one, recognised
// by process id and start time, and continues with its data.
//
// # The folder
//
//	lock                  held (flock) by the running supervisor
//	state.json            what runs: phase, parts, process ids, ports, versions
//	kubeconfig            cluster-admin, for people
//	kubeconfigs/          one per identity of the control plane, and nap's own
//	pki/                  authority, service account key, certificates, bootstrap token
//	etcd/                 the data
//	logs/                 one file per part; the previous run's end in .1
//	kube-scheduler.yaml   the scheduler's configuration
//	egress.yaml           how the API server connects into the cluster, see [Network]
//
// Services may keep files of their own there.
//
// Files that hold a credential have mode 0600.
package lab
