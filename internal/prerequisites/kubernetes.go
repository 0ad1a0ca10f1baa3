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
		row(46, "memory-limit", "nap's container may use as much memory as a cluster of this size takes",
			"The kernel ends a controller that takes more, which then reads the whole cluster again.",
			Warning, memoryEnough, SourceDeployments, SourceSize),
		row(47, rowAccount, "The ServiceAccount of nap's Deployment may do in the cluster what the controller needs",
			"The API server refuses what the controller does, pods wait, and a controller that restarts does not start.",
			Failed, accountsMay, SourceDeployments, SourceAccounts),
	}
}

// What a controller takes at most, in bytes: by itself, and for each node and each pod. Clusters
// with ten pods to a node were measured (docs/scale.md), which a test holds this against. How
// it divides between nodes and pods is estimated from what the caches keep of a pod.
const (
	memoryBase    = 110e6
	memoryPerNode = 145e3
	memoryPerPod  = 22e3
)

// MemoryOf is about how much memory, in bytes, a controller takes at most in a cluster of so
// many nodes and pods.
func MemoryOf(nodes, pods int64) int64 { return memoryBase + memoryPerNode*nodes + memoryPerPod*pods }

// MemoryLimitDoes reports whether a limit in bytes does for a cluster: it takes nine tenths
// of it at most, since beyond that the collector of garbage works ever harder.
func MemoryLimitDoes(limit, nodes, pods int64) bool { return MemoryOf(nodes, pods) <= limit/10*9 }

// MemoryLimit is the limit for a cluster, in whole GiB. A third of it is left for growth.
func MemoryLimit(nodes, pods int64) int64 {
	const gi = 1 << 30
	return (MemoryOf(nodes, pods)*3/2 + gi - 1) / gi
}

func memoryEnough(f *Facts) answer {
	k := f.Kubernetes
	limit := k.Controller.MemoryLimit
	a := answer{read: fmt.Sprintf("%d nodes, %d pods", k.Nodes, k.Pods)}
	switch {
	case k.Controller.Deployment == "":
		a.read += ", no Deployment of nap"
		return a
	case limit == 0:
		a.read += ", no limit"
		return a
	}
	a.read += ", limit " + inGi(limit)
	if !MemoryLimitDoes(limit, k.Nodes, k.Pods) {
		namespace, _, _ := strings.Cut(k.Controller.Deployment, "/")
		a.fault = fmt.Sprintf("a cluster of %d nodes and %d pods takes about %s, and a container of Deployment %s may use %s",
			k.Nodes, k.Pods, inGi(MemoryOf(k.Nodes, k.Pods)), k.Controller.Deployment, inGi(limit))
		a.fix = fmt.Sprintf("helm upgrade %s charts/nap --namespace %s --reset-then-reuse-values --set resources.limits.memory=%dGi",
			k.Controller.Release, namespace, MemoryLimit(k.Nodes, k.Pods))
	}
	return a
}

// accountsMay looks at what the accounts of nap's Deployments lack.
func accountsMay(f *Facts) answer {
	const most = 5
	accounts := f.Kubernetes.Accounts
	if len(accounts) == 0 {
		return answer{read: "no Deployment of nap"}
	}
	var a answer
	var read, faults []string
	for _, account := range accounts {
		denied := account.Denied
		read = append(read, fmt.Sprintf("%s has %d of %d permissions", account.Name, account.Asked-len(denied), account.Asked))
		if len(denied) == 0 {
			continue
		}
		text := strings.Join(denied[:min(most, len(denied))], ", ")
		if len(denied) > most {
			text += fmt.Sprintf(", and %d more", len(denied)-most)
		}
		faults = append(faults, fmt.Sprintf("ServiceAccount %s may not: %s", account.Name, text))
		namespace, _, _ := strings.Cut(account.Name, "/")
		a.fix = fmt.Sprintf("helm upgrade %s charts/nap --namespace %s --reset-then-reuse-values, or nap enable", account.Release, namespace)
	}
	a.read, a.fault = strings.Join(read, ", "), strings.Join(faults, "; ")
	return a
}

// inGi is an amount of memory for people.
func inGi(bytes int64) string { return fmt.Sprintf("%.1f Gi", float64(bytes)/(1<<30)) }

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
		a.fault, a.fix = strings.Join(faults, "; "), definitionsFix(k)
	}
	return a
}

// definitionsFix is how the definitions come into the form of this nap. Those of a release are
// left to Helm, which owns their fields. Others are taken over, from all that have changed them. Roles
// are never part of it: their bindings would name another account than the installation's.
func definitionsFix(k *Kubernetes) string {
	namespace, release, made := strings.Cut(k.DefinitionsRelease, "/")
	if !made {
		return "nap controller manifests --definitions | kubectl apply --server-side --force-conflicts -f -"
	}
	return fmt.Sprintf("helm upgrade --install %s charts/nap-crd --namespace %s, or nap enable", release, namespace)
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
