package armtest

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/billing/armbilling"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/consumption/armconsumption"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/costmanagement/armcostmanagement/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/reservations/armreservations"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions"
)

// exchange are the published types of what a route takes and answers.
type exchange struct{ request, answer bodyType }

// operation is what the address in Azure-AsyncOperation answers:
// https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
type operation struct {
	ID              string  `json:"id"`
	Name            string  `json:"name"`
	Status          string  `json:"status"`
	StartTime       string  `json:"startTime"`
	EndTime         string  `json:"endTime"`
	PercentComplete float64 `json:"percentComplete"`
	Error           *cause  `json:"error"`
	Properties      any     `json:"properties"`
}

// operationOrNone is an operation, or nothing for the form of the header Location.
type operationOrNone struct{}

func (operationOrNone) check(body []byte) []string {
	if len(body) == 0 {
		return nil
	}
	return strictly[operation]().check(body)
}

// orNone is a type of bodies that may be missing: what was there no more is not shown.
type orNone struct{ bodyType }

func (o orNone) check(body []byte) []string {
	if len(body) == 0 {
		return nil
	}
	return o.bodyType.check(body)
}

// resourceGroup is a resource group:
// https://learn.microsoft.com/rest/api/resources/resource-groups/get
type resourceGroup struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Location   string            `json:"location"`
	ManagedBy  string            `json:"managedBy"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
	} `json:"properties"`
}

// feature is a preview feature of a subscription:
// https://learn.microsoft.com/rest/api/resources/features/get
type feature struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Properties struct {
		State string `json:"state"`
	} `json:"properties"`
}

// list is a page of a list of which the SDK has no model.
type list[T any] struct {
	Value    []T    `json:"value"`
	NextLink string `json:"nextLink"`
}

// nodeImage is an entry of the list of node images of AKS's preview API.
type nodeImage struct {
	OS       string `json:"os"`
	SKU      string `json:"sku"`
	Version  string `json:"version"`
	FullName string `json:"fullName"`
}

// placementRequest and placementAnswer are those of
// https://learn.microsoft.com/rest/api/computerecommender/spot-placement-scores/post
type placementRequest struct {
	DesiredLocations []string        `json:"desiredLocations"`
	DesiredSizes     []placementSize `json:"desiredSizes"`
	DesiredCount     int             `json:"desiredCount"`
	AvailabilityZone bool            `json:"availabilityZones"`
}

type placementSize struct {
	SKU string `json:"sku"`
}

type placementAnswer struct {
	placementRequest
	PlacementScores []struct {
		SKU              string `json:"sku"`
		Region           string `json:"region"`
		AvailabilityZone string `json:"availabilityZone"`
		Score            string `json:"score"`
		IsQuotaAvailable bool   `json:"isQuotaAvailable"`
	} `json:"placementScores"`
}

// Paths of what the routes are about.
const (
	inSubscription = "/subscriptions/{}/providers/"
	inGroup        = "/subscriptions/{}/resourceGroups/{}/providers/"
	clusters       = inGroup + "Microsoft.ContainerService/managedClusters"
	pools          = clusters + "/{}/agentPools"
	virtualMachine = inGroup + "Microsoft.Compute/virtualMachines/{}"
)

// bodyTypes are the types of all routes, by method and path.
var bodyTypes = sync.OnceValue(func() map[string]exchange {
	none := absent{}
	types := map[string]exchange{
		"GET /subscriptions/{}":                                                 {none, modelOf[armsubscriptions.Subscription]()},
		"GET /subscriptions/{}/locations":                                       {none, modelOf[armsubscriptions.LocationListResult]()},
		"GET /subscriptions/{}/providers/{}":                                    {none, modelOf[armresources.Provider]()},
		"GET " + inSubscription + "Microsoft.Features/providers/{}/features/{}": {none, strictly[feature]()},
		"GET /subscriptions/{}/resourceGroups":                                  {none, strictly[list[resourceGroup]]()},
		"GET /subscriptions/{}/resourceGroups/{}":                               {none, strictly[resourceGroup]()},
		"POST /providers/Microsoft.ResourceGraph/resources": {modelOf[armresourcegraph.QueryRequest](),
			modelOf[armresourcegraph.QueryResponse]()},

		"GET " + virtualMachine + "/instanceView": {none,
			modelOf[armcompute.VirtualMachineInstanceView]()},
		"POST " + virtualMachine + "/simulateEviction": {none, none},
		"POST " + virtualMachine + "/restart":          {none, none},
		"POST " + virtualMachine + "/retrieveBootDiagnosticsData": {none,
			modelOf[armcompute.RetrieveBootDiagnosticsDataResult]()},
		"GET " + inSubscription + "Microsoft.Compute/skus": {none,
			modelOf[armcompute.ResourceSKUsResult]()},
		"GET " + inSubscription + "Microsoft.Compute/locations/{}/usages": {none,
			modelOf[armcompute.ListUsagesResult]()},
		"POST " + inSubscription + "Microsoft.Compute/locations/{}/placementScores/{}/generate": {strictly[placementRequest](),
			strictly[placementAnswer]()},
		"GET " + inSubscription + "Microsoft.Compute/locations/{}/communityGalleries/{}/images/{}/versions": {none,
			modelOf[armcompute.CommunityGalleryImageVersionList]()},
		"GET " + inSubscription + "Microsoft.Compute/locations/{}/communityGalleries/{}/images/{}/versions/{}": {none,
			modelOf[armcompute.CommunityGalleryImageVersion]()},

		"GET " + inGroup + "Microsoft.Network/virtualNetworks/{}/usages": {none, modelOf[armnetwork.VirtualNetworkListUsageResult]()},

		"GET " + inSubscription + "Microsoft.Billing/billingProperty/{}":      {none, modelOf[armbilling.Property]()},
		"GET " + inSubscription + "Microsoft.Consumption/pricesheets/{}":      {none, modelOf[armconsumption.PriceSheetResult]()},
		"POST /{}/providers/Microsoft.CostManagement/pricesheets/{}/download": {none, none},
		"GET /{}/providers/Microsoft.CostManagement/operationResults/{}":      {none, orNone{modelOf[armcostmanagement.DownloadURL]()}},
		"GET /providers/Microsoft.Capacity/reservations":                      {none, modelOf[armreservations.ListResult]()},

		"POST " + clusters + "/{}/stop":        {none, none},
		"POST " + clusters + "/{}/start":       {none, none},
		"POST " + pools + "/{}/deleteMachines": {modelOf[armcontainerservice.AgentPoolDeleteMachinesParameter](), none},
		"GET " + inSubscription + "Microsoft.ContainerService/locations/{}/nodeImageVersions": {none, strictly[list[nodeImage]]()},
	}
	for path, t := range map[string][3]bodyType{
		"roleAssignments": {modelOf[armauthorization.RoleAssignmentListResult](), modelOf[armauthorization.RoleAssignment](),
			modelOf[armauthorization.RoleAssignmentCreateParameters]()},
		"roleDefinitions": {modelOf[armauthorization.RoleDefinitionListResult](), modelOf[armauthorization.RoleDefinition](),
			modelOf[armauthorization.RoleDefinition]()},
	} {
		at := "/{}/providers/Microsoft.Authorization/" + path
		types["GET "+at], types["GET "+at+"/{}"] = exchange{none, t[0]}, exchange{none, t[1]}
		types["PUT "+at+"/{}"], types["DELETE "+at+"/{}"] = exchange{t[2], t[1]}, exchange{none, orNone{t[1]}}
	}
	for _, provider := range []string{"Microsoft.Compute", "Microsoft.Network", "Microsoft.ContainerService"} {
		types["GET "+inSubscription+provider+"/locations/{}/operations/{}"] = exchange{none, operationOrNone{}}
	}
	// A type of resources has one model of an item, one of a list and one of a patch.
	resource := func(path string, item, page, patch bodyType) {
		types["GET "+path+"/{}"], types["PUT "+path+"/{}"] = exchange{none, item}, exchange{item, item}
		types["PATCH "+path+"/{}"], types["DELETE "+path+"/{}"] = exchange{patch, item}, exchange{none, none}
		types["GET "+path] = exchange{none, page}
		types["GET "+inSubscription+path[len(inGroup):]] = exchange{none, page}
	}
	const identities = inGroup + "Microsoft.ManagedIdentity/userAssignedIdentities"
	resource(identities, modelOf[armmsi.Identity](), modelOf[armmsi.UserAssignedIdentitiesListResult](), modelOf[armmsi.IdentityUpdate]())
	resource(identities+"/{}/federatedIdentityCredentials", modelOf[armmsi.FederatedIdentityCredential](),
		modelOf[armmsi.FederatedIdentityCredentialsListResult](), none)
	computePath, networkPath := inGroup+"Microsoft.Compute/", inGroup+"Microsoft.Network/"
	resource(computePath+"virtualMachines", modelOf[armcompute.VirtualMachine](), modelOf[armcompute.VirtualMachineListResult](),
		modelOf[armcompute.VirtualMachineUpdate]())
	resource(virtualMachine+"/extensions", modelOf[armcompute.VirtualMachineExtension](),
		modelOf[armcompute.VirtualMachineExtensionsListResult](),
		modelOf[armcompute.VirtualMachineExtensionUpdate]())
	resource(computePath+"disks", modelOf[armcompute.Disk](), modelOf[armcompute.DiskList](), modelOf[armcompute.DiskUpdate]())
	resource(computePath+"diskEncryptionSets", modelOf[armcompute.DiskEncryptionSet](), modelOf[armcompute.DiskEncryptionSetList](),
		modelOf[armcompute.DiskEncryptionSetUpdate]())
	resource(computePath+"capacityReservationGroups", modelOf[armcompute.CapacityReservationGroup](),
		modelOf[armcompute.CapacityReservationGroupListResult](), modelOf[armcompute.CapacityReservationGroupUpdate]())
	resource(computePath+"capacityReservationGroups/{}/capacityReservations", modelOf[armcompute.CapacityReservation](),
		modelOf[armcompute.CapacityReservationListResult](), modelOf[armcompute.CapacityReservationUpdate]())

	networkTags := modelOf[armnetwork.TagsObject]()
	resource(networkPath+"networkInterfaces", modelOf[armnetwork.Interface](), modelOf[armnetwork.InterfaceListResult](), networkTags)
	resource(networkPath+"virtualNetworks", modelOf[armnetwork.VirtualNetwork](), modelOf[armnetwork.VirtualNetworkListResult](),
		networkTags)
	resource(networkPath+"virtualNetworks/{}/subnets", modelOf[armnetwork.Subnet](), modelOf[armnetwork.SubnetListResult](), networkTags)
	resource(networkPath+"loadBalancers", modelOf[armnetwork.LoadBalancer](), modelOf[armnetwork.LoadBalancerListResult](), networkTags)
	resource(networkPath+"networkSecurityGroups", modelOf[armnetwork.SecurityGroup](), modelOf[armnetwork.SecurityGroupListResult](),
		networkTags)
	resource(networkPath+"natGateways", modelOf[armnetwork.NatGateway](), modelOf[armnetwork.NatGatewayListResult](), networkTags)
	resource(networkPath+"routeTables", modelOf[armnetwork.RouteTable](), modelOf[armnetwork.RouteTableListResult](), networkTags)

	resource(clusters, modelOf[armcontainerservice.ManagedCluster](), modelOf[armcontainerservice.ManagedClusterListResult](),
		modelOf[armcontainerservice.TagsObject]())
	resource(pools, modelOf[armcontainerservice.AgentPool](), modelOf[armcontainerservice.AgentPoolListResult](), none)
	resource(clusters+"/{}/maintenanceConfigurations", modelOf[armcontainerservice.MaintenanceConfiguration](),
		modelOf[armcontainerservice.MaintenanceConfigurationListResult](), none)
	resource(pools+"/{}/machines", described{"Machine"}, described{"MachineListResult"}, none)
	types["PUT "+pools+"/{}/machines/{}"] = exchange{written{"Machine"}, described{"Machine"}}
	return types
})
