package compute

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// scores answer the placement score API.
type scores struct {
	sub   *arm.Subscription
	books *books
}

// scoreBody is the question of the placement score API.
type scoreBody struct {
	DesiredLocations []string `json:"desiredLocations"`
	DesiredSizes     []struct {
		SKU string `json:"sku"`
	} `json:"desiredSizes"`
	DesiredCount      int  `json:"desiredCount"`
	AvailabilityZones bool `json:"availabilityZones"`
}

// generate says how likely spot machines are to be placed.
func (s *scores) generate(c *arm.Call) (arm.Reply, error) {
	if !strings.EqualFold(c.Path.Names[1], "spot") {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	var q scoreBody
	if err := json.Unmarshal(c.Body, &q); err != nil {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: '%s'.", err)
	}
	switch {
	case q.DesiredCount < 1 || q.DesiredCount > 1000:
		return arm.Reply{}, arm.ErrInvalidParameter("desiredCount", "desiredCount must be between 1 and 1000, not %d.", q.DesiredCount)
	case len(q.DesiredSizes) == 0 || len(q.DesiredSizes) > 5:
		return arm.Reply{}, arm.ErrInvalidParameter("desiredSizes", "desiredSizes must have 1 to 5 entries, not %d.", len(q.DesiredSizes))
	case len(q.DesiredLocations) == 0 || len(q.DesiredLocations) > 8:
		return arm.Reply{}, arm.ErrInvalidParameter("desiredLocations",
			"desiredLocations must have 1 to 8 entries, not %d.", len(q.DesiredLocations))
	}
	scores := []any{}
	for _, region := range q.DesiredLocations {
		for _, size := range q.DesiredSizes {
			zones := []string{"0"}
			if q.AvailabilityZones {
				zones = s.sub.SKUTable.Zones(size.SKU, region)
			}
			for _, zone := range zones {
				e := arm.Document{"sku": size.SKU, "region": region, "score": s.score(size.SKU, region, zone, q.DesiredCount),
					"isQuotaAvailable": s.spotQuotaFor(size.SKU, q.DesiredCount)}
				if q.AvailabilityZones {
					e["availabilityZone"] = zone
				}
				scores = append(scores, e)
			}
		}
	}
	return arm.Reply{Status: http.StatusOK,
		Body: arm.Document{"desiredLocations": arm.Texts(q.DesiredLocations), "desiredSizes": q.DesiredSizes,
			"desiredCount": q.DesiredCount, "availabilityZones": q.AvailabilityZones, "placementScores": scores}}, nil
}

// score rates one size in one zone: what capacity faults and the capacity
// table say, and for the rest a fixed opinion per size and zone.
func (s *scores) score(size, region, zone string, count int) string {
	known, ok := s.sub.SKUTable.Size(size)
	if _, spot := s.sub.SKUTable.SpotPrice(size, region); !ok || !spot {
		return "DataNotFoundOrStale"
	}
	m := Spec{Size: known.Name, Zone: zone, Priority: arm.Spot}
	target := s.books.machines.target("", actionVMWrite, m)
	for _, f := range s.sub.Faults.OfKind(arm.FaultCapacity) {
		if f.Selects(target) {
			return "Low"
		}
	}
	if !s.books.hasRoom(known.Name, m) {
		return "Low"
	}
	x := s.sub.Random.Hash("score", known.Name, region, zone) % 10
	if count > 100 {
		x += 3
	}
	switch {
	case x < 6:
		return "High"
	case x < 9:
		return "Medium"
	}
	return "Low"
}

// spotQuotaFor says whether the spot quota has room for so many machines.
func (s *scores) spotQuotaFor(size string, count int) bool {
	known, _ := s.sub.SKUTable.Size(size)
	return s.books.quota.used[usageSpot]+int64(known.VCPUs*count) <= s.books.limit(usageSpot)
}
