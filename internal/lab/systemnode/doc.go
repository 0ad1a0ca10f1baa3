// Package systemnode plays one node of a cluster's system pool, on which pods run as
// processes of this machine. The real scheduler binds pods to it; the Deployment and
// its ReplicaSets are the real controller manager's.
//
//	node := systemnode.New(config, env)
//	err := node.Run(ctx)
//
// A pod with an image of Config.Programs runs that program as the kubelet would run
// its container: with the environment, the volumes and the ServiceAccount's token that
// its specification gives it and no other, under the probes that it states, started again
// when it ends, and stopped within its grace period. Every other pod is played: its
// containers are said to run.
//
// # What is not as in a container
//
// The process sees this machine's files and ports. What differs because of that, and
// nothing else, is in [Substitutions]; a test compares it with what a process of the
// chart is started with.
package systemnode
