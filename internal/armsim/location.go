package armsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// getSubscription shows the subscription.
func (s *Server) getSubscription(*call) (reply, error) {
	id := s.cfg.SubscriptionID
	return reply{status: http.StatusOK, body: document{"id": "/subscriptions/" + id, "subscriptionId": id,
		"tenantId": s.cfg.TenantID, "displayName": "armsim", "state": "Enabled"}}, nil
}

// listLocations lists the regions with their zones. Which physical zone is
// behind zone 1 differs between subscriptions.
func (s *Server) listLocations(*call) (reply, error) {
	values := []any{}
	for _, region := range s.cat.Regions() {
		turn := s.hash("zones", s.cfg.SubscriptionID, region) % 3
		var zones []any
		for n := range uint64(3) {
			zones = append(zones, document{"logicalZone": fmt.Sprint(n + 1), "physicalZone": fmt.Sprintf("%s-az%d", region, (n+turn)%3+1)})
		}
		values = append(values, document{
			"id": "/subscriptions/" + s.cfg.SubscriptionID + "/locations/" + region, "subscriptionId": s.cfg.SubscriptionID,
			"name": region, "type": "Region", "displayName": region, "regionalDisplayName": region,
			"metadata": document{"regionType": "Physical", "regionCategory": "Recommended"}, "availabilityZoneMappings": zones,
		})
	}
	return reply{status: http.StatusOK, body: document{"value": values}}, nil
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

// placementScores says how likely spot machines are to be placed.
func (s *Server) placementScores(c *call) (reply, error) {
	if !strings.EqualFold(c.path.names[1], "spot") {
		return reply{}, errResourceNotFound(c.path)
	}
	var q scoreBody
	if err := json.Unmarshal(c.body, &q); err != nil {
		return reply{}, newError(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: '%s'.", err)
	}
	switch {
	case q.DesiredCount < 1 || q.DesiredCount > 1000:
		return reply{}, errInvalidParameter("desiredCount", "desiredCount must be between 1 and 1000, not %d.", q.DesiredCount)
	case len(q.DesiredSizes) == 0 || len(q.DesiredSizes) > 5:
		return reply{}, errInvalidParameter("desiredSizes", "desiredSizes must have 1 to 5 entries, not %d.", len(q.DesiredSizes))
	case len(q.DesiredLocations) == 0 || len(q.DesiredLocations) > 8:
		return reply{}, errInvalidParameter("desiredLocations", "desiredLocations must have 1 to 8 entries, not %d.", len(q.DesiredLocations))
	}
	scores := []any{}
	for _, region := range q.DesiredLocations {
		for _, size := range q.DesiredSizes {
			zones := []string{"0"}
			if q.AvailabilityZones {
				zones = s.cat.Zones(size.SKU, region)
			}
			for _, zone := range zones {
				e := document{"sku": size.SKU, "region": region, "score": s.score(size.SKU, region, zone, q.DesiredCount),
					"isQuotaAvailable": s.spotQuotaFor(size.SKU, q.DesiredCount)}
				if q.AvailabilityZones {
					e["availabilityZone"] = zone
				}
				scores = append(scores, e)
			}
		}
	}
	return reply{status: http.StatusOK, body: document{"desiredLocations": texts(q.DesiredLocations), "desiredSizes": q.DesiredSizes,
		"desiredCount": q.DesiredCount, "availabilityZones": q.AvailabilityZones, "placementScores": scores}}, nil
}

// score rates one size in one zone: what capacity faults and the capacity
// table say, and for the rest a fixed opinion per size and zone.
func (s *Server) score(size, region, zone string, count int) string {
	known, ok := s.cat.Size(size)
	if _, spot := s.cat.SpotPrice(size, region); !ok || !spot {
		return "DataNotFoundOrStale"
	}
	m := vmSpec{Size: known.Name, Zone: zone, Priority: prioritySpot}
	target := s.target("", actionVMWrite, m)
	for _, f := range s.st.Faults {
		if f.Kind == FaultCapacity && f.selects(target) {
			return "Low"
		}
	}
	if !s.hasRoom(known.Name, m) {
		return "Low"
	}
	x := s.hash("score", known.Name, region, zone) % 10
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

func (s *Server) spotQuotaFor(size string, count int) bool {
	known, _ := s.cat.Size(size)
	return s.quota.used[usageSpot]+int64(known.VCPUs*count) <= s.limit(usageSpot)
}
