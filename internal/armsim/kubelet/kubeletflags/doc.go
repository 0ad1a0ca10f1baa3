// Package kubeletflags knows a kubelet's command line: which flags which version knows
// (flags.txt, with its source), what those that change a node mean, and with which of
// them no kubelet starts ([Of]).
package kubeletflags
