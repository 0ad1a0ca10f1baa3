package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/gzjson"
)

// Form is the version of [Document].
const Form = 1

// Bounds of what is written.
const (
	// mostObject is the size of a Snapshot's status as JSON, in bytes: with the rest of the
	// object it stays below 64 KiB.
	mostObject = 60 << 10
	// mostShard is the size of a shard's data, in bytes, mostShards how many there may be.
	mostShard  = 512 << 10
	mostShards = 8
	// mostRead bounds what a reader unpacks, in bytes.
	mostRead = 256 << 20
)

// Document is everything that the controller tells.
type Document struct {
	// Status is what the Snapshot says, with nothing omitted.
	Status v1alpha1.SnapshotStatus `json:"status"`
	// Verdicts are what the controller has decided on pods that wait.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// DefaultSpread are the spread constraints that pods without any of their own get, as
	// the controller's setting --scheduler-config has them.
	DefaultSpread []corev1.TopologySpreadConstraint `json:"defaultSpread,omitempty"`
	// ResourceClaims says that pods with resource claims are planned, as the controller's
	// setting --ignore-dra-requests=false has it.
	ResourceClaims bool `json:"resourceClaims,omitempty"`
	// Terms are what the subscription pays instead of retail prices, as the controller's file
	// --prices-file has them; nil for none.
	Terms *price.Terms `json:"terms,omitempty"`
	// Memory is what the controller must not forget, by the name of its source.
	Memory map[string]string `json:"memory,omitempty"`
}

// Verdict is what was decided on pods of one kind: that they wait, and why, or that a
// machine is on its way for them.
type Verdict struct {
	// Workload is the kind, namespace and name of what controls the pods.
	Workload string `json:"workload"`
	// Pods are their namespaces and names.
	Pods []string `json:"pods"`
	// NodeClaim is the machine that is on its way for them; empty for pods that wait.
	NodeClaim string `json:"nodeClaim,omitempty"`
	// Event is the message of the pods' events, after Karpenter's own words.
	Event string `json:"event,omitempty"`
	// Reason, Why, Nearest, Fix, NotCause and Details are what explain.Pending has.
	Reason   string   `json:"reason,omitempty"`
	Why      string   `json:"why,omitempty"`
	Nearest  string   `json:"nearest,omitempty"`
	Fix      string   `json:"fix,omitempty"`
	NotCause string   `json:"notCause,omitempty"`
	Details  []string `json:"details,omitempty"`
}

// digest tells two contents apart, apart from the time at which they were written.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack writes a document as compressed JSON within the bounds of the shards: of one that
// is too large the details of verdicts are left out, and then verdicts from the end.
func pack(d *Document) ([]byte, error) {
	out := *d
	out.Verdicts = slices.Clone(d.Verdicts)
	for {
		data, err := gzjson.Pack(&out)
		if err != nil || len(data) <= mostShard*mostShards || len(out.Verdicts) == 0 {
			return data, err
		}
		if slices.ContainsFunc(out.Verdicts, func(v Verdict) bool { return v.Details != nil }) {
			for i := range out.Verdicts {
				out.Verdicts[i].Details = nil
			}
			continue
		}
		out.Verdicts = out.Verdicts[:len(out.Verdicts)/2]
	}
}

// unpack reads what pack has written.
func unpack(data []byte) (*Document, error) {
	d := &Document{}
	if err := gzjson.Unpack(data, d, mostRead); err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	return d, nil
}

// split cuts data into shards.
func split(data []byte) [][]byte {
	return slices.Collect(slices.Chunk(data, mostShard))
}

// shortened is a list of a status: its name, how long it is, and what keeps the first of
// it.
type shortened struct {
	name string
	size func() int
	cut  func(n int)
}

// shorten is the status as the Snapshot has it: lists are cut until it is small enough,
// the longest first, and what was left out is counted.
func shorten(s v1alpha1.SnapshotStatus) (v1alpha1.SnapshotStatus, error) {
	lists := []shortened{
		{"pending", func() int { return len(s.Pending) }, func(n int) { s.Pending = s.Pending[:n] }},
		{"refusals", func() int { return len(s.Refusals) }, func(n int) { s.Refusals = s.Refusals[:n] }},
		{"quotas", func() int { return len(s.Quotas) }, func(n int) { s.Quotas = s.Quotas[:n] }},
		{"nodePools", func() int { return len(s.NodePools) }, func(n int) { s.NodePools = s.NodePools[:n] }},
		{"moves", func() int { return len(s.Moves) }, func(n int) { s.Moves = s.Moves[:n] }},
		{"leaving", func() int { return len(s.Leaving) }, func(n int) { s.Leaving = s.Leaving[:n] }},
		{"machines", func() int { return len(s.Machines) }, func(n int) { s.Machines = s.Machines[:n] }},
	}
	s.Omitted = nil
	s.Quotas = slices.DeleteFunc(slices.Clone(s.Quotas), func(q v1alpha1.QuotaLine) bool { return q.Used == 0 && q.Limit > 0 })
	for {
		text, err := json.Marshal(s)
		if err != nil {
			return s, fmt.Errorf("write the snapshot's status: %w", err)
		}
		longest := slices.MaxFunc(lists, func(x, y shortened) int { return cmp.Compare(x.size(), y.size()) })
		n := longest.size()
		if len(text) <= mostObject || n == 0 {
			return s, nil
		}
		if s.Omitted == nil {
			s.Omitted = map[string]int32{}
		}
		s.Omitted[longest.name] += int32(n - n/2)
		longest.cut(n / 2)
	}
}
