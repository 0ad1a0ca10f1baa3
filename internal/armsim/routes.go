package armsim

import (
	"net/http"
	"slices"
	"strings"
)

// route is one row of the API: a method on a type of resource.
type route struct {
	method string
	typ    string // with Azure's case, as in actions and messages
	item   bool   // one resource; otherwise a collection or an action
	class  string // the throttling policy of the resource provider, see PublishedLimits
	open   bool   // needs no permission beyond a valid token
	handle func(*Server, *call) (reply, error)
	action string // what permissions and faults call it, derived
}

// Types of resources, lower case, as they are stored.
const (
	typeGroup       = "resourcegroups"
	typeVM          = "microsoft.compute/virtualmachines"
	typeExtension   = "microsoft.compute/virtualmachines/extensions"
	typeDisk        = "microsoft.compute/disks"
	typeNIC         = "microsoft.network/networkinterfaces"
	typeVNET        = "microsoft.network/virtualnetworks"
	typeSubnet      = "microsoft.network/virtualnetworks/subnets"
	typeLB          = "microsoft.network/loadbalancers"
	typeNSG         = "microsoft.network/networksecuritygroups"
	typeRouteTable  = "microsoft.network/routetables"
	typeCluster     = "microsoft.containerservice/managedclusters"
	typePool        = "microsoft.containerservice/managedclusters/agentpools"
	typeMachine     = "microsoft.containerservice/managedclusters/agentpools/machines"
	typeMaintenance = "microsoft.containerservice/managedclusters/maintenanceconfigurations"
)

// routeTable is the whole API.
func routeTable() map[string]*route {
	const item, all = true, false
	rows := []route{
		{method: "GET", typ: "subscriptions", item: item, handle: (*Server).getSubscription},
		{method: "GET", typ: "subscriptions/locations", item: all, handle: (*Server).listLocations},
		{method: "GET", typ: "resourceGroups", item: item, handle: (*Server).getDocument},
		{method: "GET", typ: "resourceGroups", item: all, handle: (*Server).listDocuments},

		{method: "PUT", typ: "Microsoft.Compute/virtualMachines", item: item, class: "PutVM", handle: (*Server).putVM},
		{method: "PATCH", typ: "Microsoft.Compute/virtualMachines", item: item, class: "UpdateVM", handle: (*Server).patchVM},
		{method: "DELETE", typ: "Microsoft.Compute/virtualMachines", item: item, class: "DeleteVM", handle: (*Server).deleteVM},
		{method: "GET", typ: "Microsoft.Compute/virtualMachines", item: item, class: "LowCostGetVM", handle: (*Server).getVM},
		{method: "GET", typ: "Microsoft.Compute/virtualMachines", item: all, class: "HighCostGetVM", handle: (*Server).listDocuments},
		{method: "GET", typ: "Microsoft.Compute/virtualMachines/instanceView", item: all, class: "LowCostGetVM", handle: (*Server).getInstanceView},
		{method: "POST", typ: "Microsoft.Compute/virtualMachines/simulateEviction", item: all, class: "DeleteVM", handle: (*Server).simulateEviction},
		{method: "PUT", typ: "Microsoft.Compute/virtualMachines/extensions", item: item, class: "UpdateVM", handle: (*Server).putExtension},
		{method: "PATCH", typ: "Microsoft.Compute/virtualMachines/extensions", item: item, class: "UpdateVM", handle: (*Server).patchExtension},
		{method: "DELETE", typ: "Microsoft.Compute/virtualMachines/extensions", item: item, class: "UpdateVM", handle: (*Server).deleteDocument},
		{method: "GET", typ: "Microsoft.Compute/virtualMachines/extensions", item: item, class: "LowCostGetVM", handle: (*Server).getDocument},
		{method: "GET", typ: "Microsoft.Compute/virtualMachines/extensions", item: all, class: "LowCostGetVM", handle: (*Server).listDocuments},
		{method: "GET", typ: "Microsoft.Compute/locations/operations", item: item, class: "GetOperation", open: true, handle: (*Server).getOperation},
		{method: "GET", typ: "Microsoft.Compute/locations/usages", item: all, handle: (*Server).listUsages},
		{method: "GET", typ: "Microsoft.Compute/skus", item: all, handle: (*Server).listSKUs},
		{method: "POST", typ: "Microsoft.Compute/locations/placementScores/generate", item: all, handle: (*Server).placementScores},
		{method: "GET", typ: "Microsoft.Compute/locations/communityGalleries/images/versions", item: all, handle: (*Server).listCommunityVersions},
		{method: "GET", typ: "Microsoft.Compute/locations/communityGalleries/images/versions", item: item, handle: (*Server).getCommunityVersion},

		{method: "PUT", typ: "Microsoft.Network/networkInterfaces", item: item, class: "NetworkWrite", handle: (*Server).putNIC},
		{method: "PATCH", typ: "Microsoft.Network/networkInterfaces", item: item, class: "NetworkWrite", handle: (*Server).patchDocument},
		{method: "DELETE", typ: "Microsoft.Network/networkInterfaces", item: item, class: "NetworkWrite", handle: (*Server).deleteNIC},
		{method: "GET", typ: "Microsoft.Network/virtualNetworks/usages", item: all, class: "NetworkRead", handle: (*Server).listSubnetUsages},
		{method: "GET", typ: "Microsoft.Network/virtualNetworks/subnets", item: item, class: "NetworkRead", handle: (*Server).getSubnet},
		{method: "GET", typ: "Microsoft.Network/virtualNetworks/subnets", item: all, class: "NetworkRead", handle: (*Server).listDocuments},
		{method: "PUT", typ: "Microsoft.Network/virtualNetworks/subnets", item: item, class: "NetworkWrite", handle: (*Server).putSubnet},

		{method: "POST", typ: "Microsoft.ResourceGraph/resources", item: all, class: "ResourceGraph", open: true, handle: (*Server).queryGraph},

		{method: "GET", typ: "Microsoft.ContainerService/locations/operations", item: item, open: true, handle: (*Server).getOperation},
		{method: "GET", typ: "Microsoft.Network/locations/operations", item: item, open: true, handle: (*Server).getOperation},
		{method: "GET", typ: "Microsoft.ContainerService/locations/nodeImageVersions", item: all, handle: (*Server).listNodeImageVersions},
		{method: "PUT", typ: "Microsoft.ContainerService/managedClusters/agentPools/machines", item: item, handle: (*Server).putMachine},
		{method: "PATCH", typ: "Microsoft.ContainerService/managedClusters/agentPools/machines", item: item, handle: (*Server).putMachine},
		{method: "POST", typ: "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines", item: all, handle: (*Server).deleteMachines},
	}
	for _, typ := range []string{"Microsoft.ContainerService/managedClusters/agentPools/machines"} {
		rows = append(rows,
			route{method: "GET", typ: typ, item: item, handle: (*Server).getDocument},
			route{method: "GET", typ: typ, item: all, handle: (*Server).listDocuments})
	}
	rows = append(rows, route{method: "GET", typ: "Microsoft.Network/networkInterfaces", item: item, class: "NetworkRead", handle: (*Server).getDocument},
		route{method: "GET", typ: "Microsoft.Network/networkInterfaces", item: all, class: "NetworkRead", handle: (*Server).listDocuments})
	// Types that are documents and nothing more.
	for _, typ := range []string{
		"Microsoft.Compute/disks", "Microsoft.Compute/diskEncryptionSets", "Microsoft.Compute/capacityReservationGroups",
		"Microsoft.Compute/capacityReservationGroups/capacityReservations",
		"Microsoft.Network/virtualNetworks", "Microsoft.Network/loadBalancers", "Microsoft.Network/networkSecurityGroups", "Microsoft.Network/routeTables",
		"Microsoft.ContainerService/managedClusters", "Microsoft.ContainerService/managedClusters/agentPools",
		"Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
	} {
		read, write := "", ""
		if strings.HasPrefix(typ, "Microsoft.Network/") {
			read, write = "NetworkRead", "NetworkWrite"
		}
		rows = append(rows,
			route{method: "GET", typ: typ, item: item, class: read, handle: (*Server).getDocument},
			route{method: "GET", typ: typ, item: all, class: read, handle: (*Server).listDocuments},
			route{method: "PUT", typ: typ, item: item, class: write, handle: (*Server).putDocument},
			route{method: "PATCH", typ: typ, item: item, class: write, handle: (*Server).patchDocument},
			route{method: "DELETE", typ: typ, item: item, class: write, handle: (*Server).deleteDocument})
	}
	table := make(map[string]*route, len(rows))
	for i := range rows {
		r := &rows[i]
		r.action = actionOf(r.typ, r.method)
		table[routeKey(r.method, strings.ToLower(r.typ), r.item)] = r
	}
	return table
}

func routeKey(method, typ string, item bool) string {
	if item {
		return method + " " + typ + "/*"
	}
	return method + " " + typ
}

// actionOf is the name that role definitions give to a method on a type.
func actionOf(typ, method string) string {
	switch {
	case typ == "resourceGroups":
		typ = "Microsoft.Resources/subscriptions/resourceGroups"
	case !strings.HasPrefix(typ, "Microsoft."):
		typ = "Microsoft.Resources/" + typ
	}
	switch method {
	case http.MethodGet:
		return typ + "/read"
	case http.MethodDelete:
		return typ + "/delete"
	case http.MethodPost:
		return typ + "/action"
	}
	return typ + "/write"
}

// Versions of the API that each namespace takes: those of the SDK modules in
// use, and older ones that clients of the same resources send.
var (
	computeVersions   = []string{"2021-07-01", "2022-08-01", "2024-03-01", "2024-07-01", "2024-11-01", "2025-01-02", "2025-03-03", "2025-04-01", "2025-06-05"}
	networkVersions   = []string{"2022-01-01", "2024-05-01", "2025-01-01", "2025-03-01", "2025-05-01"}
	containerVersions = []string{"2025-05-01", "2025-08-01", "2025-10-01", "2026-01-01", "2026-03-01", "2026-04-01", "2025-10-02-preview", "2026-01-02-preview", "2026-04-02-preview"}
	graphVersions     = []string{"2021-03-01", "2022-10-01", "2024-04-01"}
	resourceVersions  = []string{"2020-01-01", "2021-04-01", "2022-12-01", "2025-04-01"}
)

// versionsOf lists the versions of a type's namespace.
func versionsOf(typ string) []string {
	switch namespace, _, _ := strings.Cut(typ, "/"); namespace {
	case "microsoft.compute":
		return computeVersions
	case "microsoft.network":
		return networkVersions
	case "microsoft.containerservice":
		return containerVersions
	case "microsoft.resourcegraph":
		return graphVersions
	}
	return resourceVersions
}

// resolve finds the route of a request and checks subscription, version and group.
func (s *Server) resolve(c *call) error {
	p, ok := parsePath(c.r.URL.Path)
	if !ok {
		return newError(http.StatusNotFound, "InvalidResourceType", "The path '%s' is not a resource of this API.", c.r.URL.Path)
	}
	c.path = p
	if p.subscription != "" && !strings.EqualFold(p.subscription, s.cfg.SubscriptionID) {
		return newError(http.StatusNotFound, "SubscriptionNotFound", "The subscription '%s' could not be found.", p.subscription)
	}
	if err := checkVersion(c, p); err != nil {
		return err
	}
	if c.route = s.routes[routeKey(c.r.Method, p.typ, p.item())]; c.route == nil {
		return s.errNoRoute(c, p)
	}
	if p.group != "" {
		group := s.find("/subscriptions/" + p.subscription + "/resourceGroups/" + p.group)
		if group == nil {
			return errGroupNotFound(p.group)
		}
		c.path.group = lastSegment(group.ID)
	}
	return nil
}

// checkVersion looks at the api-version of a request.
func checkVersion(c *call, p path) error {
	version, known := c.r.URL.Query().Get("api-version"), versionsOf(p.typ)
	switch {
	case version == "":
		return newError(http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
	case slices.Contains(known, version):
		return nil
	case len(p.segments) < 2:
		return newError(http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version '%s' is invalid. The supported versions are '%s'.", version, strings.Join(known, ","))
	}
	return newError(http.StatusBadRequest, "NoRegisteredProviderFound",
		"No registered resource provider found for location '%s' and API version '%s' for type '%s'. The supported api-versions are '%s'.",
		c.r.URL.Query().Get("location"), version, p.segments[1], strings.Join(known, ", "))
}

// errNoRoute tells a type that does not exist from a method that it has not.
func (s *Server) errNoRoute(c *call, p path) error {
	for _, m := range []string{"GET", "PUT", "POST"} {
		if s.routes[routeKey(m, p.typ, p.item())] != nil {
			return newError(http.StatusMethodNotAllowed, "MethodNotAllowed", "The method '%s' is not allowed on '%s'.", c.r.Method, c.r.URL.Path)
		}
	}
	namespace, typ, _ := strings.Cut(p.typ, "/")
	return newError(http.StatusNotFound, "InvalidResourceType",
		"The resource type '%s' could not be found in the namespace '%s' for api version '%s'.", typ, namespace, c.r.URL.Query().Get("api-version"))
}
