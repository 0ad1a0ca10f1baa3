package cli

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// planted are the faults, one for each row, each with what the finding must say.
func planted() map[string]func(*patient) string {
	pool := func(fields string) string {
		return `{"agentPoolProfiles": [{"name": "system", "mode": "System", "osType": "Linux"}, {"name": "other", "mode": "User", ` + fields + `}]}`
	}
	network := func(fields string) string {
		return `{"networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay", "networkDataplane": "cilium", "networkPolicy": "cilium",
			"loadBalancerSku": "standard", "outboundType": "loadBalancer", "podCidrs": ["192.168.0.0/16"], "serviceCidrs": ["10.0.0.0/16"],
			"dnsServiceIP": "10.0.0.10", "ipFamilies": ["IPv4"], ` + fields + `}}`
	}
	says := func(properties, want string) func(*patient) string {
		return func(p *patient) string { p.says(properties); return want }
	}
	denied := func(direction, protocol, from, to, ports, want string) func(*patient) string {
		return func(p *patient) string {
			p.inOwnNetwork(rule("deny-it", "200", direction, "Deny", protocol, from, to, ports))
			return want
		}
	}
	return map[string]func(*patient) string{
		"kubernetes-version":     says(`{"currentKubernetesVersion": "1.25.9"}`, "the control plane runs Kubernetes 1.25.9"),
		"node-provisioning-mode": says(`{"nodeProvisioningProfile": {"mode": "Auto"}}`, "AKS's own node auto-provisioning is on"),
		"cluster-autoscaler":     says(pool(`"enableAutoScaling": true`), "the cluster autoscaler scales agent pool other"),
		"windows-pools":          says(pool(`"osType": "Windows"`), "agent pool other runs Windows"),
		"cluster-identity":       says(`{"servicePrincipalProfile": {"clientId": "5e41"}}`, "signs in with service principal 5e41"),
		"kubelet-identity":       says(`{"identityProfile": {"kubeletidentity": {"resourceId": "", "clientId": "", "objectId": ""}}}`, "the cluster has no kubelet identity"),
		"ip-families":            says(network(`"ipFamilies": ["IPv4", "IPv6"]`), "IPv4, IPv6"),
		"http-proxy":             says(`{"httpProxyConfig": {"httpProxy": "proxy:3128"}}`, "is no http or https URL"),
		"custom-ca": func(p *patient) string {
			p.says(`{"securityProfile": {"customCATrustCertificates": ["` + endedCertificate(p.T) + `"]}}`)
			return "certificate 1 has ended on"
		},
		"outbound-type":     says(network(`"outboundType": "carrierPigeon"`), "outbound type carrierPigeon is none of"),
		"load-balancer-sku": says(network(`"loadBalancerSku": "basic"`), "SKU basic"),
		"network-plugin":    says(network(`"networkPlugin": "kubenet", "networkPluginMode": ""`), "the network plugin is kubenet"),
		"network-policy":    says(network(`"networkPolicy": "calico"`), "Calico"),
		"pod-subnet":        says(pool(`"podSubnetID": "/subnets/pods", "podIPAllocationMode": "DynamicIndividual"`), "pods of agent pool other get addresses from a subnet"),
		"static-blocks":     says(pool(`"podSubnetID": "/subnets/pods", "podIPAllocationMode": "StaticBlock"`), "static blocks"),
		"power-state":       says(`{"powerState": {"code": "Stopped"}}`, "the cluster is stopped"),
		"upgrade-channel":   says(`{"autoUpgradeProfile": {"upgradeChannel": "none", "nodeOSUpgradeChannel": "None"}}`, "no upgrade channel"),
		"node-subnet-size": func(p *patient) string {
			p.inOwnNetwork()
			p.put = append(p.put, [2]string{ownNodes, `{"properties": {"addressPrefix": "172.19.1.0/29"}}`})
			return "172.19.1.0/29) has 3 free addresses"
		},
		"address-overlap": says(network(`"podCidrs": ["10.224.0.0/16"]`), "overlaps 10.224.0.0/16 of pods"),
		"api-server-subnet-size": func(p *patient) string {
			p.inOwnNetwork()
			p.apiServerSubnet("172.19.0.0/29", prerequisitesDelegation)
			return "subnet apiserver is a /29"
		},
		"api-server-subnet-delegation": func(p *patient) string {
			p.inOwnNetwork()
			p.apiServerSubnet("172.19.0.0/28", "")
			return "is not delegated to Microsoft.ContainerService/managedClusters"
		},
		"api-server-subnet-addresses": func(p *patient) string {
			p.inOwnNetwork()
			for _, name := range []string{"a", "b", "c"} {
				p.put = append(p.put, [2]string{strings.TrimSuffix(ownVNET, "virtualNetworks/own") + "networkInterfaces/" + name, `{"location": "eastus",
					"properties": {"ipConfigurations": [{"name": "i", "properties": {"subnet": {"id": "` + ownAPIServer + `"}}}]}}`})
			}
			return "has 8 addresses left for the cluster, which reserves 9: others use 3"
		},
		"outbound-path":               says(network(`"outboundType": "userDefinedRouting"`), "has no route table, and the outbound type is userDefinedRouting"),
		"nodes-to-api-server":         denied("Inbound", "Tcp", "172.19.1.0/24", "172.19.0.0/28", "4000-5000", "rule deny-it of own, inbound stops nodes on their way to TCP 4443"),
		"load-balancer-to-api-server": denied("Inbound", "*", "AzureLoadBalancer", "*", "9988", "rule deny-it of own, inbound stops the load balancer"),
		"node-to-node":                denied("Inbound", "Udp", "172.19.1.0/25", "172.19.1.0/24", "*", "rule deny-it of own, inbound stops nodes on their way to other nodes"),
		"pod-to-node":                 denied("Inbound", "Tcp", "192.168.0.0/16", "172.19.1.0/24", "10250", "stops pods on their way to nodes"),
		"pod-to-pod":                  denied("Outbound", "Udp", "192.168.0.0/16", "192.168.0.0/16", "53", "rule deny-it of own, outbound stops pods on their way to other pods"),
		"required-fqdns":              denied("Outbound", "*", "*", "Internet", "*", "rule deny-it of own, outbound stops machines on their way to TCP 443 of"),
		"subscription": func(p *patient) string {
			p.configured(func(c *armsim.Config) { c.Account.State = "Warned" })
			return "the subscription is Warned"
		},
		"resource-providers": func(p *patient) string {
			p.configured(func(c *armsim.Config) { c.Account.UnregisteredProviders = []string{"Microsoft.Compute"} })
			return "Microsoft.Compute is not registered"
		},
		"role-on-network": func(p *patient) string {
			p.inOwnNetwork()
			p.configured(func(c *armsim.Config) { c.Account.Assignments = nil })
			p.grant(ownAPIServer)
			return "may not join subnet nodes of virtual network own"
		},
		"role-on-api-server-subnet": func(p *patient) string {
			p.inOwnNetwork()
			p.configured(func(c *armsim.Config) { c.Account.Assignments = nil })
			p.grant(ownNodes)
			return "may not join the API server's subnet apiserver"
		},
		"role-of-nap": func(p *patient) string {
			p.configured(func(c *armsim.Config) {
				c.Account.Assignments = append(c.Account.Assignments, armsim.RoleAssignment{
					PrincipalID: "owner", Scope: "/subscriptions/" + testSubscription, Role: "nap",
					Actions: append([]string{"Microsoft.Compute/skus/read"}, config.Actions()[3:]...)})
			})
			return "nap's identity may not: Microsoft.Compute/locations/usages/read on /subscriptions/" + testSubscription
		},
		"quota": func(p *patient) string {
			p.configured(func(c *armsim.Config) { c.Quota = map[string]int64{"cores": 50} })
			return "NodePool default may buy 100 vCPUs, and the quota (cores) is 50"
		},
		"node-images": func(p *patient) string {
			p.configured(func(c *armsim.Config) { c.ImageVersions = []string{} })
			return "has no any version of"
		},
		"retail-prices": func(p *patient) string {
			p.configured(func(c *armsim.Config) { c.Sizes = []string{"none"} })
			return "the retail price API has no price for the region"
		},
		"maintenance-windows": func(p *patient) string {
			p.put = append(p.put, [2]string{"/subscriptions/" + testSubscription + "/resourceGroups/nap/providers/Microsoft.ContainerService/managedClusters/nap/" +
				"maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule", `{"properties": {"maintenanceWindow": {"durationHours": 4, "startTime": "02:00",
				"utcOffset": "+00:00", "startDate": "2020-01-01", "schedule": {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Monday"}},
				"notAllowedDates": [{"start": "2020-01-01", "end": "2099-12-31"}]}}}`})
			return "maintenance window aksManagedNodeOSUpgradeSchedule: it does not open again"
		},
		"definitions": func(p *patient) string {
			p.objects = p.objects[1:]
			return "aksnodeclasses.karpenter.azure.com is missing"
		},
		"other-autoscalers": func(p *patient) string {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller", Image: "registry.example/aks/karpenter/controller:1.7.0"}}
			p.objects = append(p.objects, d)
			return "Deployment kube-system/karpenter is another autoscaler"
		},
		"bootstrap-token": func(p *patient) string {
			p.objects = append(p.objects, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken,
				Data: map[string][]byte{"usage-bootstrap-authentication": []byte("true"), "expiration": []byte("2020-01-01T00:00:00Z")},
			})
			return "bootstrap token kube-system/bootstrap-token-abcdef has ended on 2020-01-01T00:00:00Z"
		},
		"managed-gpu-feature": func(p *patient) string {
			c, managed := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, v1beta1.ManagementModeManaged
			c.Spec.GPU = &v1beta1.GPU{Nvidia: &v1beta1.NvidiaGPU{ManagementMode: &managed}}
			p.objects = append(p.objects, c)
			return "the feature ManagedGPUExperiencePreview of Microsoft.ContainerService is NotRegistered"
		},
		"clock": func(p *patient) string { p.ahead = -5 * time.Minute; return "from the API server's" },
		"node-pools": func(p *patient) string {
			lost := plainPool("lost", 10)
			lost.Spec.Template.Spec.Requirements = append(lost.Spec.Template.Spec.Requirements,
				karpv1.NodeSelectorRequirementWithMinValues{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"1"}})
			p.objects = append(p.objects, lost)
			return "NodePool lost can buy nothing: no zone is called 1; zones are eastus-1, eastus-2, eastus-3"
		},
		"outbound-type-change": func(p *patient) string {
			p.says(network(`"outboundType": "managedNATGateway"`))
			p.objects = append(p.objects, notedOutbound(v1alpha1.Outbound{Type: "loadBalancer"}), claimMade("before", time.Now()))
			return "the outbound type is managedNATGateway, and machines of nap that run were made with loadBalancer: 1"
		},
		"role-in-cluster": func(p *patient) string {
			p.installed(corev1.Container{Name: "controller"})
			p.denied = func(of *authorizationv1.SubjectAccessReviewSpec) bool {
				return of.User == "system:serviceaccount:nap-system:buyer" && of.ResourceAttributes.Verb == "delete"
			}
			return "ServiceAccount nap-system/buyer may not: delete nodeclaims.karpenter.sh, delete nodes, delete pods, "
		},
		"memory-limit": func(p *patient) string {
			p.installed(corev1.Container{Name: "controller", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
			}})
			return "a container of Deployment nap-system/nap may use 0.1 Gi"
		},
	}
}

// TestDoctorEvaluatesWayToEachHost: rules that deny the internet and permit service tags
// stop the hosts that no tag permits, and a proxy takes the place of all but the API server.
func TestDoctorEvaluatesWayToEachHost(t *testing.T) {
	deny := rule("deny-it", "4000", "Outbound", "Deny", "*", "*", "Internet", "*")
	registry := rule("registry", "100", "Outbound", "Allow", "Tcp", "VirtualNetwork", "MicrosoftContainerRegistry.eastus", "443")
	all := rule("azure", "110", "Outbound", "Allow", "Tcp", "172.19.1.0/24", "AzureCloud", "443")
	proxied := `{"httpProxyConfig": {"httpProxy": "http://172.19.1.9:3128"}}`
	for name, tt := range map[string]struct {
		rules      []string
		says, want string
		stops      []string // hosts that the finding names
		passes     string   // one that it does not
	}{
		"registry alone": {rules: []string{deny, registry}, want: "rule deny-it of own, outbound stops machines",
			stops: []string{"packages.aks.azure.com", "login.microsoftonline.com"}, passes: "mcr.microsoft.com"},
		"all of Azure":  {rules: []string{deny, all}},
		"through proxy": {rules: []string{deny}, says: proxied},
		"proxy stopped": {rules: []string{rule("no-proxy", "100", "Outbound", "Deny", "Tcp", "*", "172.19.1.9", "3128")}, says: proxied,
			want: "rule no-proxy of own, outbound stops machines on their way to the proxy, TCP 3128 of 172.19.1.9"},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy(t)
			p.inOwnNetwork(tt.rules...)
			if tt.says != "" {
				p.says(tt.says)
			}
			report, _, _ := p.examine()
			r := report.Results[28]
			if r.Name != "required-fqdns" || (tt.want == "") != (r.Verdict == prerequisites.OK) || !strings.Contains(r.Finding, tt.want) {
				t.Fatalf("%+v, want %q", r, tt.want)
			}
			for _, host := range tt.stops {
				if !strings.Contains(r.Finding, host) {
					t.Errorf("%s does not name %s", r.Finding, host)
				}
			}
			if tt.passes != "" && strings.Contains(r.Finding, " "+tt.passes) {
				t.Errorf("%s names %s", r.Finding, tt.passes)
			}
		})
	}
}

// notedOutbound is the note of the controller on the outbound type.
func notedOutbound(noted v1alpha1.Outbound) client.Object {
	return &v1alpha1.NodeAutoProvisioning{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NodeAutoProvisioningName},
		Status:     v1alpha1.NodeAutoProvisioningStatus{Outbound: &noted},
	}
}

func claimMade(name string, at time.Time) client.Object {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}}
}

// TestDoctorCountsMachinesMadeBeforeTheOutboundTypeChanged: by the note of the controller,
// and none where all machines are younger, or the type is what it was.
func TestDoctorCountsMachinesMadeBeforeTheOutboundTypeChanged(t *testing.T) {
	changed := metav1.NewTime(time.Now().Add(-time.Hour))
	old, young := claimMade("old", changed.Add(-time.Hour)), claimMade("young", changed.Add(time.Minute))
	for name, tt := range map[string]struct {
		noted  v1alpha1.Outbound
		claims []client.Object
		want   string
	}{
		"noted":          {v1alpha1.Outbound{Type: "loadBalancer", Before: "none", Changed: &changed}, []client.Object{old, young}, "were made with none: 1"},
		"all replaced":   {v1alpha1.Outbound{Type: "loadBalancer", Before: "none", Changed: &changed}, []client.Object{young}, ""},
		"never changed":  {v1alpha1.Outbound{Type: "loadBalancer"}, []client.Object{old, young}, ""},
		"not noted yet":  {v1alpha1.Outbound{Type: "none"}, []client.Object{old, young}, "were made with none: 2"},
		"has no machine": {v1alpha1.Outbound{Type: "none"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy(t)
			p.objects = append(p.objects, append(tt.claims, notedOutbound(tt.noted))...)
			report, _, _ := p.examine()
			r := report.Results[43]
			if r.Name != "outbound-type-change" || tt.want == "" && r.Verdict != prerequisites.OK || !strings.Contains(r.Finding, tt.want) {
				t.Errorf("%+v, want %q", r, tt.want)
			}
		})
	}
}

// TestDoctorComparesLimitsWithQuotaOfFamilies: a NodePool that can buy one family has no
// more room than its quota, however much the region has.
func TestDoctorComparesLimitsWithQuotaOfFamilies(t *testing.T) {
	p := healthy(t)
	p.configured(func(c *armsim.Config) {
		c.Quota = map[string]int64{"standardNCASv3_T4Family": 16, "Standard NCASv3_T4 Family": 16}
	})
	gpu := plainPool("gpu", 64)
	gpu.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_NC4as_T4_v3", "Standard_NC8as_T4_v3"}},
		{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}}}
	p.objects = append(p.objects, gpu)
	report, text, code := p.examine()
	r := report.Results[34]
	if code != exitWarning || r.Name != "quota" || !strings.Contains(r.Finding, "NodePool gpu may buy 64 vCPUs, and the quota (Standard NCASv3_T4 Family) is 16") ||
		strings.Contains(r.Finding, "NodePool default") {
		t.Errorf("exit code %d: %+v\n%s", code, r, text)
	}
}

func TestDoctorNamesExactlyThePlantedFault(t *testing.T) {
	faults := planted()
	for _, row := range prerequisites.Table() {
		plant := faults[row.Name]
		if plant == nil {
			t.Errorf("row %d %s has no planted fault", row.Number, row.Name)
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			p := healthy(t)
			want := plant(p)
			report, text, code := p.examine()
			if code != map[prerequisites.Verdict]int{prerequisites.Failed: exitFailed, prerequisites.Warning: exitWarning}[row.Worst] {
				t.Errorf("exit code %d", code)
			}
			for _, r := range report.Results {
				switch {
				case r.Number != row.Number && r.Verdict != prerequisites.OK:
					t.Errorf("also %d %s: %s: %s", r.Number, r.Name, r.Verdict, r.Finding)
				case r.Number == row.Number && (r.Verdict != row.Worst || !strings.Contains(r.Finding, want) || r.Why == "" || r.Fix == ""):
					t.Errorf("%+v\nwant %s: %s", r, row.Worst, want)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}
