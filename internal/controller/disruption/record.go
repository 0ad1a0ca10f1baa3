package disruption

import (
	"encoding/json"
	"fmt"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// Record is a command as it is written in v1beta1.AnnotationCommand.
type Record struct {
	// ID is a random word, unique among commands.
	ID     string                 `json:"id"`
	Reason model.DisruptionReason `json:"reason"`
	// Begun is when it was decided, in UTC.
	Begun time.Time `json:"begun"`
	// Remove are the nodes that are removed, Replace the nodes that are launched first.
	Remove  []Removed     `json:"remove"`
	Replace []Replacement `json:"replace,omitempty"`
	// FromTemplate commands replace a node of a static NodePool as it is.
	FromTemplate bool `json:"fromTemplate,omitempty"`
	// TerminateFirst ones leave it to the NodePool to make the new node, when the old one
	// is gone.
	TerminateFirst bool `json:"terminateFirst,omitempty"`
	// Saving is dollars per hour, Evictions the pods that have to move.
	Saving    float64 `json:"savingPerHour"`
	Evictions int     `json:"evictions"`
}

// Removed is a node that a command removes: its NodeClaim, Node and NodePool by name.
type Removed struct {
	Claim string `json:"claim"`
	Node  string `json:"node"`
	Pool  string `json:"nodePool"`
	// Pods are how many pods of the node have to move, for the metrics.
	Pods int `json:"pods,omitempty"`
}

// Replacement is a node that is launched for a command. The offering is empty for
// commands from a template.
type Replacement struct {
	Claim        string             `json:"claim"`
	Pool         string             `json:"nodePool"`
	InstanceType string             `json:"instanceType,omitempty"`
	Zone         string             `json:"zone,omitempty"`
	CapacityType model.CapacityType `json:"capacityType,omitempty"`
}

func (r *Record) text() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a record is plain data: %v", err))
	}
	return string(text)
}

// recordOf reads the command that a claim is part of; nil without one.
func recordOf(claim *karpv1.NodeClaim) (*Record, error) {
	text, ok := claim.Annotations[v1beta1.AnnotationCommand]
	if !ok {
		return nil, nil
	}
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("annotation %s of NodeClaim %s: %w", v1beta1.AnnotationCommand, claim.Name, err)
	}
	if r.ID == "" || len(r.Remove) == 0 {
		return nil, fmt.Errorf("annotation %s of NodeClaim %s: names no command", v1beta1.AnnotationCommand, claim.Name)
	}
	return r, nil
}

// intent is the command as the planner looks at it again. Nodes that are gone or
// leaving by now are left out.
func (r *Record) intent(gone map[string]bool) consolidate.Intent {
	in := consolidate.Intent{Reason: r.Reason, FromTemplate: r.FromTemplate}
	for _, n := range r.Remove {
		if !gone[n.Claim] {
			in.Nodes = append(in.Nodes, n.Node)
		}
	}
	for _, c := range r.Replace {
		in.Replacements = append(in.Replacements, consolidate.Replacement{
			Node: c.Claim, Pool: c.Pool, InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType,
		})
	}
	return in
}

// addsNode reports whether the command creates a node of a static NodePool beside the one
// that goes: Karpenter's mirror must then count that one as going.
func addsNode(r *Record) bool { return r.FromTemplate && !r.TerminateFirst }

// measured is the command as the metrics tell of it.
func (r *Record) measured() *metrics.Command {
	c := &metrics.Command{
		Reason: r.Reason, Replacements: len(r.Replace), TerminateFirst: r.TerminateFirst, Saving: r.Saving, Evictions: r.Evictions,
	}
	for _, n := range r.Remove {
		c.NodePools = append(c.NodePools, n.Pool)
	}
	return c
}
