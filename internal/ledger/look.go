package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Look is the cluster at a moment, as the book sees it.
type Look struct {
	At       time.Time
	Machines []Seen
	// Gone is when machines went, or else their NodeClaims, by the claims' names, where that
	// was seen. A machine may have gone before an earlier look that still saw its claim.
	Gone map[string]time.Time
}

// Seen is a machine that is there.
type Seen struct {
	NodeClaim, NodePool, Size, Zone, CapacityType string
	Launched                                      time.Time
	Planned                                       float64
	Paid                                          Cost
	// Move is the command for which it was bought, Command the one that removes it.
	Move    string
	Command *fleet.Command
	// End is how it will have ended once it is gone.
	End string
	// Shares are whose it is, from 0 to 1 and at most 1 together; the rest is idle.
	// Starting machines have none.
	Shares   []PodShare
	Starting bool
}

// PodShare is the share of a node that pods of one namespace request. Labels are the values
// of the labels by which costs are told apart, in the order of the settings.
type PodShare struct {
	Namespace string
	Labels    []string
	Daemon    bool
	Share     float64
}

// Settings say how the cluster is looked at.
type Settings struct {
	Now time.Time
	// Labels are the keys of the pods' labels by which costs are told apart.
	Labels []string
	// Gone is as in Look.
	Gone map[string]time.Time
}

// LookAt looks at a fleet. It fails only when ctx ends.
func LookAt(ctx context.Context, now *fleet.Snapshot, catalogs fleet.Catalogs, s Settings) (*Look, error) {
	views, err := now.Views(ctx, catalogs)
	if err != nil {
		return nil, err
	}
	pods := podsByNode(now)
	out := &Look{At: s.Now, Gone: s.Gone}
	for i := range views {
		v := &views[i]
		claim := now.Claim(v.Claim)
		if claim == nil || claim.ProviderID == "" || claim.Launched.IsZero() {
			continue
		}
		m := Seen{
			NodeClaim: claim.Name, NodePool: v.Pool, Size: v.Labels[model.LabelInstanceType], Zone: v.Labels[model.LabelZone],
			CapacityType: v.CapacityType(), Launched: claim.Launched.UTC(), Planned: claim.Planned.Dollars(), Move: claim.Replaces,
			Command: claim.Command,
			Paid:    Cost{(v.Price - v.DiskPrice - v.NodePrice).Dollars(), v.DiskPrice.Dollars(), v.NodePrice.Dollars()},
		}
		node := now.Node(claim.NodeName)
		m.End = endOf(claim, node)
		if node == nil || claim.Initialized.IsZero() {
			m.Starting = true
		} else {
			m.Shares = sharesOf(pods[node.Name], v.Allocatable, s.Labels)
		}
		out.Machines = append(out.Machines, m)
	}
	return out, nil
}

// endOf is how a machine will have ended once it is gone.
func endOf(claim *fleet.Claim, node *fleet.Node) string {
	switch {
	case node != nil && node.Evicted:
		return EndEvicted
	case claim.Command != nil:
		return EndMoved
	case claim.BootFailed:
		return EndBoot
	}
	return EndDeleted
}

func podsByNode(now *fleet.Snapshot) map[string][]*fleet.Pod {
	out := map[string][]*fleet.Pod{}
	for p := range now.Pods() {
		if p.Bound() {
			out[p.Node] = append(out[p.Node], p)
		}
	}
	return out
}

// sharesOf is which part of a node its pods request: the mean over its CPU, its memory
// and its devices. A node that is overcommitted is shared in proportion.
func sharesOf(pods []*fleet.Pod, room fleet.Amounts, labels []string) []PodShare {
	var counted []string
	for _, name := range room.Names() {
		// Storage and the number of pods are seldom what a node is bought for.
		if name == "cpu" || name == "memory" || strings.Contains(name, "/gpu") {
			counted = append(counted, name)
		}
	}
	if len(counted) == 0 {
		return nil
	}
	out, sum := make([]PodShare, 0, len(pods)), 0.0
	for _, p := range pods {
		share := PodShare{Namespace: p.Ref.Namespace, Daemon: p.Daemon || p.Static, Labels: make([]string, len(labels))}
		for _, name := range counted {
			share.Share += float64(p.Spec.Requests.Get(name)) / float64(room.Get(name)) / float64(len(counted))
		}
		for i, key := range labels {
			if p.Labels != nil {
				share.Labels[i] = p.Labels.Values[key]
			}
		}
		sum += share.Share
		out = append(out, share)
	}
	if sum > 1 {
		for i := range out {
			out[i].Share /= sum
		}
	}
	return out
}
