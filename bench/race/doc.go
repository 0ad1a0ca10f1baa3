// Package race lets engine nap and engine karpenter do the same work in turns, on one
// running lab: a real control plane and a simulated Azure. It measures the whole way of
// a pod as its users see it, from the moment in which a Deployment is created until all
// of its pods run, and what the controller takes for it.
//
// A [Course] says what the controllers have to do. Each turn starts a controller of its
// own, so that its processor time and its peak of memory are those of the turn. The
// lab, its nodes and its simulated Azure stay; every turn ends when all machines are
// gone again.
//
//   - course.go: the courses
//   - lab.go: the lab; package onlab runs the controllers
//   - watch.go: when NodeClaims came and pods ran
//   - turn.go: one turn of one engine
//   - table.go: medians and spread
package race
