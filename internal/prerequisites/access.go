package prerequisites

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/price"
)

// accessRows are those of the subscription, rights, limits, and what machines are made from.
func accessRows() []Row {
	row := func(number int, name, wants, why string, worst Verdict, check func(*Facts) answer, needs ...Source) Row {
		return Row{Number: number, Name: name, Wants: wants, Why: why, Worst: worst, needs: needs, check: check}
	}
	return []Row{
		row(30, "subscription", "The subscription is enabled", "A subscription that is disabled, or past due, starts no machine.",
			Failed, subscriptionEnabled, SourceSubscription),
		row(31, "resource-providers", "Microsoft.Compute, Microsoft.ContainerService and Microsoft.Network are registered",
			"Azure refuses calls to a resource provider that the subscription has not registered.", Failed, providersRegistered, SourceProviders),
		row(32, "role-on-network", "The cluster's identity may join the subnets of machines in a network of your own (Network Contributor)",
			"AKS connects load balancers, routes and machines with it.", Failed, roleOnNetwork, SourceCluster, SourceNetwork, SourceRoles),
		row(33, "role-on-api-server-subnet", "The cluster's identity may join the API server's subnet (Network Contributor)",
			"AKS puts the API server there with it.", Failed, roleOnAPIServerSubnet, SourceCluster, SourceRoles),
		row(34, rowRole, "nap's identity may do each action that it needs, at its scope",
			"A missing action is found out by a purchase that Azure refuses.", Failed, roleOfNap, SourceCluster, SourceRoles),
		row(35, "quota", "The quotas of the region, and of the VM families that a NodePool can buy, hold its limit",
			"NodePools promise what the subscription refuses: pods wait although limits have room.",
			Warning, quotaHoldsLimits, SourceQuota, SourceNodePools),
		row(36, "node-images", "The gallery of AKS lists node images for the region", "Plain machines boot from them.",
			Failed, imagesListed, SourceCluster),
		row(37, "retail-prices", "The retail price API answers for the region",
			"Without it the prices of the embedded table decide which machine is the cheapest.", Warning, pricesAnswer, SourceCluster),
		row(38, "maintenance-windows", "Maintenance windows open again",
			"Outside of a window nodes are not replaced for a newer image; one that never opens keeps old images for ever.",
			Warning, windowsOpen, SourceCluster, SourceMaintenance),
	}
}

func subscriptionEnabled(f *Facts) answer {
	a := answer{read: "state " + f.Subscription.State}
	if !strings.EqualFold(f.Subscription.State, "Enabled") {
		a.fault = "the subscription is " + f.Subscription.State
		a.fix = "az account list --output table, and see the subscription's billing"
	}
	return a
}

func providersRegistered(f *Facts) answer {
	var read, missing []string
	for _, name := range slices.Sorted(maps.Keys(f.Subscription.Providers)) {
		read = append(read, name+" "+f.Subscription.Providers[name])
		if !strings.EqualFold(f.Subscription.Providers[name], "Registered") {
			missing = append(missing, name)
		}
	}
	a := answer{read: strings.Join(read, ", ")}
	if len(missing) > 0 {
		a.fault = strings.Join(missing, ", ") + " is not registered"
		a.fix = "az provider register --namespace " + strings.Join(missing, "; az provider register --namespace ")
	}
	return a
}

// may reports whether grants permit an action at a scope.
func may(grants []Grant, n Need) bool {
	scope := strings.ToLower(strings.TrimSuffix(n.Scope, "/"))
	for _, g := range grants {
		at := strings.ToLower(strings.TrimSuffix(g.Scope, "/"))
		if at != "" && scope != at && !strings.HasPrefix(scope, at+"/") {
			continue
		}
		is := func(pattern string) bool { return matches(pattern, n.Action) }
		if slices.ContainsFunc(g.Actions, is) && !slices.ContainsFunc(g.NotActions, is) {
			return true
		}
	}
	return false
}

// matches compares an action with a pattern in which * is any run of characters.
func matches(pattern, action string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	action = strings.ToLower(action)
	if len(parts) == 1 {
		return action == parts[0]
	}
	last := parts[len(parts)-1]
	if !strings.HasPrefix(action, parts[0]) {
		return false
	}
	action = action[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(action, part)
		if i < 0 {
			return false
		}
		action = action[i+len(part):]
	}
	return strings.HasSuffix(action, last)
}

const joinSubnet = "Microsoft.Network/virtualNetworks/subnets/join/action"

// contributor is the command that gives an identity the built-in role on networks.
func contributor(f *Facts, scope string) string {
	who := "PRINCIPAL_ID"
	if ids := f.Cluster.Owner.PrincipalIDs; len(ids) > 0 {
		who = ids[0]
	}
	return fmt.Sprintf(`az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal --role "Network Contributor" --scope %s`,
		who, scope)
}

func roleOnNetwork(f *Facts) answer {
	var own []string
	for _, p := range f.Cluster.Pools {
		if p.SubnetID != "" && !slices.Contains(own, p.SubnetID) {
			own = append(own, p.SubnetID)
		}
	}
	if len(own) == 0 {
		return answer{read: "AKS made the network"}
	}
	a := answer{read: "role assignments of " + strings.Join(f.Cluster.Owner.PrincipalIDs, ", ")}
	for _, id := range own {
		if !may(f.Roles.Owner, Need{joinSubnet, id}) {
			vnet, _, _ := strings.Cut(id, "/subnets/")
			a.fault, a.fix = "the cluster's identity may not join subnet "+nameOf(id)+" of virtual network "+nameOf(vnet), contributor(f, vnet)
		}
	}
	return a
}

func roleOnAPIServerSubnet(f *Facts) answer {
	id := f.Cluster.APIServerSubnetID
	if id == "" {
		return answer{read: "the API server is in no subnet of the network"}
	}
	a := answer{read: "role assignments of " + strings.Join(f.Cluster.Owner.PrincipalIDs, ", ")}
	if !may(f.Roles.Owner, Need{joinSubnet, id}) {
		a.fault, a.fix = "the cluster's identity may not join the API server's subnet "+nameOf(id), contributor(f, id)
	}
	return a
}

func roleOfNap(f *Facts) answer {
	a := answer{read: fmt.Sprintf("%d actions of principal %s", len(f.Roles.Needs), f.Roles.NapPrincipal)}
	missing := map[string][]string{} // actions by scope
	for _, n := range f.Roles.Needs {
		if !may(f.Roles.Nap, n) {
			missing[n.Scope] = append(missing[n.Scope], n.Action)
		}
	}
	var faults, fixes []string
	for _, scope := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, strings.Join(missing[scope], ", ")+" on "+scope)
		fixes = append(fixes, fmt.Sprintf(
			"az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal --role nap --scope %s",
			f.Roles.NapPrincipal, scope))
	}
	if len(faults) > 0 {
		a.fault = "nap's identity may not: " + strings.Join(faults, "; ")
		a.fix = "nap controller role > role.json; az role definition create --role-definition role.json; " + strings.Join(fixes, "; ")
	}
	return a
}

// quotaOfRegion is the name of the limit of all vCPUs of a region.
const quotaOfRegion = "cores"

func quotaHoldsLimits(f *Facts) answer {
	q := f.Quotas[quotaOfRegion]
	a := answer{read: fmt.Sprintf("%d quotas; the region's: %d of %d vCPUs used", len(f.Quotas), q.Used, q.Limit)}
	var over, names []string
	for _, p := range f.Kubernetes.NodePools {
		if p.Quota >= 0 && p.LimitCPU > p.Quota {
			over = append(over, fmt.Sprintf("NodePool %s may buy %d vCPUs, and the quota (%s) is %d",
				p.Name, p.LimitCPU, strings.Join(p.QuotaOf, ", "), p.Quota))
			names = append(names, p.QuotaOf...)
		}
	}
	if len(over) > 0 {
		a.fault = strings.Join(over, "; ")
		a.fix = fmt.Sprintf("az quota create --resource-name %s --limit-object value=VCPUS --scope %s; or lower spec.limits.cpu",
			names[0], "/subscriptions/"+f.Cluster.Subscription+"/providers/Microsoft.Compute/locations/"+f.Cluster.Location)
	}
	return a
}

func imagesListed(f *Facts) answer {
	a := answer{read: "node images " + cmp.Or(strings.Join(f.Images, ", "), "none")}
	if len(f.Images) == 0 {
		a.fault = cmp.Or(f.NoImages, "the gallery lists no node image")
		a.fix = "az sig image-version list-community --location " + f.Cluster.Location +
			" --public-gallery-name " + image.GalleryUbuntu + " --gallery-image-definition 2204gen2containerd"
	}
	return a
}

func pricesAnswer(f *Facts) answer {
	if f.NoPriceAPI {
		return answer{read: "this cloud has no retail price API: the prices are those of the embedded table, or of --prices-file"}
	}
	a := answer{read: fmt.Sprintf("%d prices on the first page", f.Prices)}
	if f.Prices == 0 {
		a.fault = cmp.Or(f.NoPrices, "the retail price API has no price for the region")
		a.fix = "permit " + price.DefaultEndpoint + " in the firewall, or give your own prices: --prices-file FILE"
	}
	return a
}

func windowsOpen(f *Facts) answer {
	read := []string{fmt.Sprintf("%d maintenance windows", len(f.Windows))}
	a := answer{}
	for _, w := range f.Windows {
		wrong := w.Wrong
		switch {
		case wrong != "":
		case w.Open && w.Next.IsZero():
			read = append(read, w.Name+" is open")
		case w.Open:
			read = append(read, w.Name+" is open until "+w.Next.UTC().Format(time.RFC3339))
		case w.Next.IsZero():
			wrong = "it does not open again"
		default:
			read = append(read, w.Name+" opens at "+w.Next.UTC().Format(time.RFC3339))
		}
		if wrong != "" {
			a.fault = "maintenance window " + w.Name + ": " + wrong
			a.fix = fmt.Sprintf("az aks maintenanceconfiguration show --name %s --cluster-name %s --resource-group %s",
				w.Name, f.Cluster.Name, f.Cluster.ResourceGroup)
		}
	}
	a.read = strings.Join(read, "; ")
	return a
}
