package armsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// resourceVersions are the API versions of Microsoft.Resources, and of namespaces
// that the server does not know.
var resourceVersions = []string{"2020-01-01", "2021-04-01", "2022-12-01", "2025-04-01"}

// subscription is Microsoft.Resources: the subscription itself, its locations and
// its resource groups.
type subscription struct {
	sub *arm.Subscription
	// state is what the subscription says of itself; unregistered are the resource
	// providers that it has not registered.
	state        string
	unregistered []string
}

// routes are the rows of the provider.
func (s subscription) routes() []arm.Route {
	documents := arm.Documents{Resources: s.sub.Resources}
	rows := []arm.Route{
		{Method: http.MethodGet, Type: "subscriptions", Item: true, Handle: s.getSubscription},
		{Method: http.MethodGet, Type: "subscriptions/locations", Handle: s.listLocations},
		{Method: http.MethodGet, Type: "subscriptions/providers", Item: true, Handle: s.getProvider},
		{Method: http.MethodGet, Type: "resourceGroups", Item: true, Handle: documents.Get},
		{Method: http.MethodGet, Type: "resourceGroups", Handle: documents.List},
	}
	for i := range rows {
		rows[i].Versions = resourceVersions
	}
	return append(rows, arm.Route{Method: http.MethodGet, Type: "Microsoft.Features/providers/features", Item: true,
		Scope: arm.SubscriptionScope, Versions: []string{"2021-07-01"}, Handle: s.getFeature})
}

// seed makes the resource groups, unless a restored state has them.
func (s subscription) seed(groups []string) {
	for _, g := range groups {
		s.sub.Resources.Seed(s.sub.Path()+"/resourceGroups/"+g, arm.TypeGroup, g, arm.Document{
			"type": "Microsoft.Resources/resourceGroups", "location": s.sub.Region, "properties": arm.Document{"provisioningState": "Succeeded"}})
	}
}

// getSubscription shows the subscription.
func (s subscription) getSubscription(*arm.Call) (arm.Reply, error) {
	id := s.sub.ID
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"id": "/subscriptions/" + id, "subscriptionId": id,
		"tenantId": s.sub.TenantID, "displayName": "armsim", "state": s.state}}, nil
}

// getProvider shows a resource provider and whether the subscription has registered it.
func (s subscription) getProvider(c *arm.Call) (arm.Reply, error) {
	name, state := c.Path.Name(), "Registered"
	if slices.ContainsFunc(s.unregistered, func(n string) bool { return strings.EqualFold(n, name) }) {
		state = "NotRegistered"
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"id": "/subscriptions/" + s.sub.ID + "/providers/" + name, "namespace": name,
		"registrationState": state, "registrationPolicy": "RegistrationRequired", "resourceTypes": []any{},
	}}, nil
}

// getFeature shows a preview feature and whether the subscription has registered it.
func (s subscription) getFeature(c *arm.Call) (arm.Reply, error) {
	name, state := strings.Join(c.Path.Names, "/"), "NotRegistered"
	if s.sub.Registered(name) {
		state = "Registered"
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"id": c.Path.ID(), "name": name, "type": "Microsoft.Features/providers/features", "properties": arm.Document{"state": state},
	}}, nil
}

// listLocations lists the regions with their zones. Which physical zone is
// behind zone 1 differs between subscriptions.
func (s subscription) listLocations(*arm.Call) (arm.Reply, error) {
	values := []any{}
	for _, region := range s.sub.SKUTable.Regions() {
		turn := s.sub.Random.Hash("zones", s.sub.ID, region) % 3
		var zones []any
		for n := range uint64(3) {
			zones = append(zones, arm.Document{"logicalZone": fmt.Sprint(n + 1), "physicalZone": fmt.Sprintf("%s-az%d", region, (n+turn)%3+1)})
		}
		values = append(values, arm.Document{
			"id": "/subscriptions/" + s.sub.ID + "/locations/" + region, "subscriptionId": s.sub.ID,
			"name": region, "type": "Region", "displayName": region, "regionalDisplayName": region,
			"metadata": arm.Document{"regionType": "Physical", "regionCategory": "Recommended"}, "availabilityZoneMappings": zones,
		})
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}
