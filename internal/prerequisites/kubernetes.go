package prerequisites

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// clusterObjectRows are those of what is in the Kubernetes cluster.
func clusterObjectRows() []Row {
	row := func(number int, name, wants, why string, worst Verdict, check func(*Facts) answer, needs ...Source) Row {
		return Row{Number: number, Name: name, Wants: wants, Why: why, Worst: worst, needs: needs, check: check}
	}
	return []Row{
		row(39, rowDefinitions, "The custom resource definitions are there, in the form of this nap",
			"The API server drops fields that its definitions lack, and nap never sees them.",
			Failed, definitions, SourceKubernetes, SourceDefinitions),
		row(40, "other-autoscalers", "No other Karpenter and no cluster autoscaler runs in the cluster",
			"Two autoscalers would buy nodes for the same pods.", Failed, otherAutoscalers, SourceDeployments),
		row(41, rowToken, "There is a bootstrap token that has not ended, where plain machines join with one",
			"A machine with a token that has ended is paid for and never becomes a node.", Failed, tokenUsable, SourceTokens),
		row(42, "clock", "The clocks of this machine and of the API server differ by less than a minute",
			"Tokens, leases and certificates are compared with the time.", Warning, clocks, SourceKubernetes),
		row(43, "node-pools", "Every NodePool can buy something",
			"Pods that need it wait for ever.", Warning, poolsBuy, SourceNodePools),
		row(44, "outbound-type-change", "The outbound type is the one with which nap's machines were made",
			"Machines keep the way to the internet that they were made with, and it may be gone: AKS changes those of its own agent pools alone.",
			Warning, outboundChanged, SourceCluster, SourceMode),
		row(45, RowManagedGPU, "The preview feature ManagedGPUExperiencePreview is registered, where an AKSNodeClass has "+
			"gpu.nvidia.managementMode Managed and AKS makes the machines",
			"AKS refuses such machines with PreviewFeatureNotRegistered, and GPU pods wait.",
			Failed, managedGPURegistered, SourceCluster, SourceFeatures, SourceNodeClasses),
	}
}

func outboundChanged(f *Facts) answer {
	is, o := cmp.Or(f.Cluster.Network.OutboundType, "not set"), &f.Kubernetes.Outbound
	a := answer{read: "outboundType " + is}
	if o.Machines > 0 {
		a.fault = fmt.Sprintf("the outbound type is %s, and machines of nap that run were made with %s: %d", is, o.Before, o.Machines)
		a.fix = update(f.Cluster, "--outbound-type "+o.Before) +
			", or replace the machines: kubectl get nodeclaims --sort-by=.metadata.creationTimestamp; kubectl delete nodeclaim NAME"
	}
	return a
}

func managedGPURegistered(f *Facts) answer {
	const provider = "Microsoft.ContainerService"
	state := cmp.Or(f.Subscription.ManagedGPU, "not known")
	a := answer{read: fmt.Sprintf("feature %s %s, %d AKSNodeClasses with the device plugin",
		FeatureManagedGPU, state, len(f.Kubernetes.ManagedGPU))}
	made := slices.ContainsFunc(f.Cluster.Pools, func(p managedcluster.AgentPool) bool { return strings.EqualFold(p.Mode, "Machines") })
	if made && len(f.Kubernetes.ManagedGPU) > 0 && !strings.EqualFold(state, "Registered") {
		a.fault = fmt.Sprintf("AKSNodeClass %s has gpu.nvidia.managementMode Managed, and the feature %s of %s is %s",
			strings.Join(f.Kubernetes.ManagedGPU, ", "), FeatureManagedGPU, provider, state)
		a.fix = fmt.Sprintf("az feature register --namespace %s --name %s; az provider register --namespace %s",
			provider, FeatureManagedGPU, provider)
	}
	return a
}

func definitions(f *Facts) answer {
	k := f.Kubernetes
	a := answer{read: "API server " + cmp.Or(k.Version, "of unknown version")}
	var faults []string
	if len(k.Missing) > 0 {
		faults = append(faults, strings.Join(k.Missing, ", ")+" is missing")
	}
	if len(k.Outdated) > 0 {
		faults = append(faults, strings.Join(k.Outdated, ", ")+" is of another version")
	}
	if len(faults) > 0 {
		a.fault, a.fix = strings.Join(faults, "; "), "nap controller manifests | kubectl apply --server-side -f -"
	}
	return a
}

func otherAutoscalers(f *Facts) answer {
	a := answer{read: fmt.Sprintf("%d Deployments of other autoscalers", len(f.Kubernetes.Autoscalers))}
	if names := f.Kubernetes.Autoscalers; len(names) > 0 {
		namespace, name, _ := strings.Cut(names[0], "/")
		a.fault = "Deployment " + strings.Join(names, ", ") + " is another autoscaler"
		a.fix = fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", namespace, name)
	}
	return a
}

func tokenUsable(f *Facts) answer {
	t := &f.Kubernetes.Token
	a := answer{read: fmt.Sprintf("%d usable bootstrap tokens", t.Usable)}
	if !t.Ends.IsZero() && t.Usable > 0 {
		a.read += ", the last until " + t.Ends.UTC().Format(time.RFC3339)
	}
	if t.Usable == 0 && t.Ended != "" {
		a.fault = t.Ended
		a.fix = "kubeadm token create --ttl 48h, or let nap keep a token: --bootstrap-tokens=own"
	}
	return a
}

func clocks(f *Facts) answer {
	const most = time.Minute
	apart := f.Now.Sub(f.Kubernetes.Clock).Truncate(time.Second)
	if f.Kubernetes.Clock.IsZero() {
		return answer{read: "the API server does not tell its time"}
	}
	a := answer{read: fmt.Sprintf("%s apart", apart.Abs())}
	if apart.Abs() >= most {
		a.fault, a.fix = fmt.Sprintf("the clock of this machine is %s from the API server's", apart), "timedatectl set-ntp true"
	}
	return a
}

func poolsBuy(f *Facts) answer {
	a := answer{read: fmt.Sprintf("%d NodePools", len(f.Kubernetes.NodePools))}
	var faults []string
	for _, p := range f.Kubernetes.NodePools {
		if p.Nothing != "" {
			faults = append(faults, "NodePool "+p.Name+" can buy nothing: "+p.Nothing)
			a.fix = "kubectl edit nodepool " + p.Name
		}
	}
	a.fault = strings.Join(faults, "; ")
	return a
}
