package kube

import (
	"encoding/json"
	"time"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// commandOf reads the disruption command that removes a claim; nil without one, and where
// the annotation cannot be read.
func commandOf(c *v1.NodeClaim) *fleet.Command {
	text, removed := c.Annotations[v1beta1.AnnotationCommand]
	if !removed {
		return nil
	}
	var r struct {
		ID        string    `json:"id"`
		Reason    string    `json:"reason"`
		Begun     time.Time `json:"begun"`
		Saving    float64   `json:"savingPerHour"`
		Evictions int       `json:"evictions"`
		Replace   []struct {
			Claim string `json:"claim"`
		} `json:"replace"`
	}
	if json.Unmarshal([]byte(text), &r) != nil || r.ID == "" {
		return nil
	}
	out := &fleet.Command{ID: r.ID, Reason: r.Reason, Begun: r.Begun, Saving: model.USD(r.Saving), Evictions: r.Evictions}
	for _, claim := range r.Replace {
		out.Replacements = append(out.Replacements, claim.Claim)
	}
	return out
}

// billedSince is when Azure accepted the machine of a claim; zero where the claim does not
// say.
func billedSince(c *v1.NodeClaim) time.Time {
	at, err := time.Parse(time.RFC3339, c.Annotations[v1beta1.AnnotationBilledSince])
	if err != nil {
		return time.Time{}
	}
	return at
}
