package kube

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// repairRecord is a repair as v1beta1.AnnotationRepair says it.
type repairRecord struct {
	Condition string    `json:"condition"`
	Since     time.Time `json:"since"`
	// Drain is such as "10m0s", empty without a bound.
	Drain string `json:"drain,omitempty"`
}

// RepairText is what [v1beta1.AnnotationRepair] says of a repair.
func RepairText(r *fleet.Repair) string {
	record := repairRecord{Condition: r.Condition, Since: r.Since.UTC()}
	if r.Drain != nil {
		record.Drain = r.Drain.String()
	}
	text, err := json.Marshal(&record)
	if err != nil {
		panic(fmt.Sprintf("a repair is plain data: %v", err))
	}
	return string(text)
}

// RepairOf reads for what repair a claim is due; nil for none, and where the annotation
// cannot be read.
func RepairOf(c *v1.NodeClaim) *fleet.Repair {
	text, due := c.Annotations[v1beta1.AnnotationRepair]
	if !due {
		return nil
	}
	var record repairRecord
	if json.Unmarshal([]byte(text), &record) != nil || record.Condition == "" {
		return nil
	}
	out := &fleet.Repair{Condition: record.Condition, Since: record.Since}
	if record.Drain != "" {
		drain, err := time.ParseDuration(record.Drain)
		if err != nil || drain < 0 {
			return nil
		}
		out.Drain = &drain
	}
	return out
}
