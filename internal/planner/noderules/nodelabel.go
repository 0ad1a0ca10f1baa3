package noderules

import "github.com/nodeautoprovision/nap/internal/model"

// Labels that every node of ours ends up with, so that pods and daemons that
// ask for them may be planned.
const (
	LabelRegistered  = "karpenter.sh/registered"
	LabelInitialized = "karpenter.sh/initialized"
)

// NewHostname is the hostname of a machine that does not exist yet, which no requirement can
// name.
const NewHostname = "\x00new"

// NodeLabel is the value of a label that a node carries or will carry once it has
// joined the cluster: a node that is still on its way lacks some labels that pods may
// already ask for.
func NodeLabel(n *model.Node, key string) (string, bool) {
	if v, ok := n.Labels[key]; ok {
		return v, true
	}
	onItsWay := n.State == model.NodeLaunching || n.State == model.NodeRegistered
	switch key {
	case LabelRegistered, LabelInitialized:
		return "true", onItsWay
	case model.LabelHostname:
		return NewHostname, n.State == model.NodeLaunching
	case model.LabelNodePool:
		return n.Pool, n.Pool != ""
	}
	return "", false
}
