// Package karpenter assembles Karpenter's own controllers on a manager of ours.
//
// Karpenter's operator package does the same for its own binary, but it parses
// the process's flags, reads its environment and panics when anything is wrong.
// Here every controller is constructed by name, so that a reader sees what runs,
// and every failure is an error.
//
// Start with [New], which builds the state that the controllers share, and
// [Assembly.Register], which adds them to the manager. Which of them decide is
// the engine's choice:
//
//	lifecycle   launch, register, initialize, drain, terminate, expire, repair,
//	            hash, validate, count: always Karpenter's
//	provisioning  Karpenter's when Deciders.Provisioning is set
//	disruption    Karpenter's when Deciders.Disruption is set
//
// Karpenter hands its options around inside the context. [WithOptions] puts them
// there; nothing of nap's own reads them.
package karpenter
