package inputs

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a file that repeats something.
type Kind struct {
	// Name is a word for flags, Says what the file has, for people.
	Name, Says string
	// once are documents which the file begins with.
	once []string
	// document is the one with a number, from 0 on; nil where the file has no more.
	document func(i int) string
	// args are further ones of nap plan.
	args []string
}

// Kinds are all kinds, in the order of the table.
func Kinds() []Kind {
	others := web(50)
	return slices.Concat(ofPods(others), ofWorkloads(), ofCluster(others))
}

// Names are those of all kinds, for people.
func Names() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// ofPods repeat pods. Others are those that wait beside them.
func ofPods(others string) []Kind {
	return []Kind{
		{Name: "pods", Says: "pods of different requests", document: func(i int) string { return pod(i, requests(i), "") }},
		{Name: "selectors", Says: "pods with node selectors and different requests", document: func(i int) string {
			return pod(i, requests(i), fmt.Sprintf(`,"nodeSelector":{"topology.kubernetes.io/zone":"eastus-%d","karpenter.azure.com/sku-cpu":"%d"}`,
				1+i%3, 4<<(i%4)))
		}},
		{Name: "terms", Says: "pods with 200 terms of node affinity", document: func(i int) string { return pod(i, alike, terms(i)) }},
		{Name: "impossible", Says: "pods that no machine holds, and 50 others", once: []string{others}, document: func(i int) string {
			return pod(i, `{"cpu":"9000","memory":"128Mi"}`, fmt.Sprintf(`,"nodeSelector":{"example.com/x":"%d"}`, i))
		}},
		{Name: "resources", Says: "pods of 60 resources of their own that no machine has, and 50 others", once: []string{others},
			document: ownResources},
		{Name: "annotation", Says: "a pod with one long annotation, many times", document: func(i int) string {
			return object("v1", "Pod", fmt.Sprintf(`"name":"p%d","namespace":"default","annotations":{"a":"%s"}`, i, strings.Repeat("x", 100_000)),
				`"spec":`+containers(alike, ""))
		}},
	}
}

// ownResources is a pod with a number that asks for extended resources which no other pod asks for.
func ownResources(i int) string {
	var names []string
	for r := range 60 {
		names = append(names, fmt.Sprintf(`"e%d.com/r%d":"1"`, i, r))
	}
	resources := "{" + strings.Join(names, ",") + "}"
	return object("v1", "Pod", fmt.Sprintf(`"name":"p%d","namespace":"default"`, i), fmt.Sprintf(
		`"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":%[1]s,"limits":%[1]s}}]}`, resources))
}

// terms are alternatives of node affinity.
func terms(i int) string {
	var all []string
	for t := range 200 {
		all = append(all, fmt.Sprintf(`{"matchExpressions":[{"key":"karpenter.azure.com/sku-cpu","operator":"In","values":["%d"]},`+
			`{"key":"topology.kubernetes.io/zone","operator":"NotIn","values":["eastus-%d"]}]}`, 1+(7*i+t)%64, 1+(i+t)%3))
	}
	return fmt.Sprintf(`,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}}`,
		strings.Join(all, ","))
}

// exclusive makes pods of an app refuse those of all others on their node.
const exclusive = `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchExpressions":[` +
	`{"key":"app","operator":"NotIn","values":["%s"]}]},"topologyKey":"kubernetes.io/hostname"}]}}`

// strangers makes pods refuse those of all namespaces but their own on their node.
const strangers = `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{},` +
	`"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"NotIn","values":["%s"]}]},"topologyKey":"kubernetes.io/hostname"}]}}`

// near makes pods want to be where those of an app are.
const near = `,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` +
	`{"labelSelector":{"matchLabels":{"app":"%s"}},"topologyKey":"%s"}]}}`

// nearPrevious makes the pods of a Deployment with a number go where those of the one before are: to
// its node, or every third time to its zone.
func nearPrevious(i int) string {
	key := "kubernetes.io/hostname"
	if i%3 == 0 {
		key = "topology.kubernetes.io/zone"
	}
	return fmt.Sprintf(near, fmt.Sprintf("d%d", max(0, i-1)), key)
}

// ofWorkloads repeat workloads.
func ofWorkloads() []Kind {
	const apart = `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` +
		`{"labelSelector":{"matchLabels":{"app":"%s"}},"topologyKey":"kubernetes.io/hostname"}]}}`
	const spread = `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule",` +
		`"labelSelector":{"matchLabels":{"app":"%[1]s"}}}]`
	named := func(i int) string { return fmt.Sprintf("d%d", i) }
	return []Kind{
		{Name: "deployments", Says: "Deployments of 40 pods, all of different requests", document: func(i int) string {
			return deployment(named(i), 40, requests(i), "")
		}},
		{Name: "replicas", Says: "one Deployment of 200,000 pods", once: []string{deployment("web", 200_000, alike, "")}},
		{Name: "spread", Says: "Deployments of six pods, each spread over zones", document: func(i int) string {
			return deployment(named(i), 6, requests(i), fmt.Sprintf(spread, named(i)))
		}},
		{Name: "apart", Says: "Deployments of three pods, each on nodes of their own", document: func(i int) string {
			return deployment(named(i), 3, alike, fmt.Sprintf(apart, named(i)))
		}},
		{Name: "exclusive", Says: "Deployments of a pod that refuses those of all others on its node", document: func(i int) string {
			return deployment(named(i), 1, alike, fmt.Sprintf(exclusive, named(i)))
		}},
		{Name: "chain", Says: "Deployments of two pods that have to be where those of the one before are", document: func(i int) string {
			return deployment(named(i), 2, alike, nearPrevious(i))
		}},
		{Name: "namespaces", Says: "namespaces with two pods each that refuse those of all others on their node", document: func(i int) string {
			name := fmt.Sprintf("t%d", i)
			return object("v1", "Namespace", fmt.Sprintf(`"name":"%[1]s","labels":{"team":"%[1]s"}`, name), `"spec":{}`) + separator +
				deploymentIn(name, named(i), 2, alike, fmt.Sprintf(strangers, name))
		}},
		{Name: "statefulsets", Says: "StatefulSets of three pods with a claim each", document: func(i int) string {
			return object("apps/v1", "StatefulSet", fmt.Sprintf(`"name":"d%d","namespace":"default"`, i), fmt.Sprintf(
				`"spec":{"serviceName":"d","replicas":3,%s,"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],`+
					`"storageClassName":"managed-csi","resources":{"requests":{"storage":"10Gi"}}}}]}`, template(named(i), alike, "")))
		}},
		{Name: "jobs", Says: "Jobs of five pods, all of different requests", document: func(i int) string {
			return object("batch/v1", "Job", fmt.Sprintf(`"name":"d%d","namespace":"default"`, i), fmt.Sprintf(
				`"spec":{"parallelism":5,"completions":5,"template":{"spec":%s}}`, containers(requests(i), `,"restartPolicy":"Never"`)))
		}},
		{Name: "daemonsets", Says: "DaemonSets beside 50 pods", once: []string{web(50)}, document: func(i int) string {
			return object("apps/v1", "DaemonSet", fmt.Sprintf(`"name":"d%d","namespace":"kube-system"`, i),
				`"spec":{`+template(named(i), `{"cpu":"1m","memory":"1Mi"}`, "")+`}`)
		}},
	}
}

// daemonSetOf is a DaemonSet for the machines of the tenant with a number.
func daemonSetOf(i int) string {
	affinity := fmt.Sprintf(`,"tolerations":[{"operator":"Exists"}],`+
		`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"tenant","operator":"In","values":["t%d"]}]}]}}}`, i)
	return object("apps/v1", "DaemonSet", fmt.Sprintf(`"name":"d%d","namespace":"kube-system"`, i),
		`"spec":{`+template(fmt.Sprintf("d%d", i), fmt.Sprintf(`{"cpu":"%dm","memory":"1Mi"}`, 1+i%77), affinity)+`}`)
}

// ofCluster repeat what is not a workload. Others are pods that wait beside it.
func ofCluster(others string) []Kind {
	tenant := func(i int, requests string) string {
		name := fmt.Sprintf("t%d", i)
		return pool(name, "default", name, name) + separator + deployment(name, 3, requests,
			fmt.Sprintf(`,"nodeSelector":{"tenant":"%[1]s"},"tolerations":[{"key":"tenant","value":"%[1]s","effect":"NoSchedule"}]`, name))
	}
	class := func(i, disk int) string {
		name := fmt.Sprintf("c%d", i)
		spec := fmt.Sprintf(`"spec":{"osDiskSizeGB":%d}`, disk)
		of := object("karpenter.azure.com/v1beta1", "AKSNodeClass", fmt.Sprintf(`"name":"%s"`, name), spec)
		return of + separator + pool(name, name, "", "")
	}
	shared := `{"key":"tenant","operator":"Exists"}`
	return []Kind{
		{Name: "nodepools", Says: "NodePools that no pod may use, beside 50 pods", once: []string{others}, document: func(i int) string {
			return pool(fmt.Sprintf("p%d", i), "default", "", fmt.Sprintf("t%d", i))
		}},
		{
			Name: "nodepools-limited", Says: "NodePools with a limit of 8 vCPUs each, beside 50 pods", once: []string{others},
			document: func(i int) string {
				return strings.Replace(pool(fmt.Sprintf("p%d", i), "default", "", ""), `"spec":{`, `"spec":{"limits":{"cpu":"8"},`, 1)
			},
		},
		{
			Name: "tenants", Says: "tenants with a NodePool and three pods each, all alike",
			document: func(i int) string { return tenant(i, alike) },
		},
		{
			Name: "tenants-differ", Says: "the same with other requests for each",
			document: func(i int) string { return tenant(i, requests(i)) },
		},
		{
			Name: "tenants-daemonsets", Says: "tenants with a NodePool, a DaemonSet and three pods each",
			document: func(i int) string { return tenant(i, alike) + separator + daemonSetOf(i) },
		},
		{
			Name: "tenants-shared", Says: "tenants of one NodePool with three pods each, of different requests",
			once: []string{poolWith("shared", "default", shared, "")},
			document: func(i int) string {
				name := fmt.Sprintf("t%d", i)
				return deployment(name, 3, requests(i), fmt.Sprintf(`,"nodeSelector":{"tenant":"%s"}`, name))
			},
		},
		{Name: "nodeclasses", Says: "AKSNodeClasses with a NodePool each, beside 50 pods", once: []string{others},
			document: func(i int) string { return class(i, 128) }},
		{
			Name: "disks", Says: "the same with 500 sizes of disks", once: []string{others},
			document: func(i int) string { return class(i, 64+i%500) },
		},
		{Name: "nodeoverlays", Says: "NodeOverlays beside 50 pods", once: []string{others}, document: func(i int) string {
			return object("karpenter.sh/v1alpha1", "NodeOverlay", fmt.Sprintf(`"name":"o%d"`, i), fmt.Sprintf(
				`"spec":{"weight":%d,"requirements":[{"key":"karpenter.azure.com/sku-cpu","operator":"In","values":["32"]}],"priceAdjustment":"+%d%%"}`,
				1+i%10_000, i%50))
		}},
		{Name: "nodes", Says: "nodes, half of them empty, beside 50 pods", once: []string{others}, document: func(i int) string {
			return node(i, "") + running(i, 1-i%2)
		}},
		{Name: "labels", Says: "nodes with 1,000 labels each, beside 50 pods", once: []string{others}, document: func(i int) string {
			var more strings.Builder
			for l := range 1_000 {
				fmt.Fprintf(&more, `,"example.com/l%d":"v%d"`, l, i)
			}
			return node(i, more.String())
		}},
		{
			Name: "consolidate", Says: "nodes with two small pods each, to consolidate", args: []string{"--consolidate"},
			document: func(i int) string { return node(i, "") + running(i, 2) },
		},
		{
			Name: "consolidate-exclusive", Says: "nodes with a pod each that refuses those of all others, to consolidate",
			args: []string{"--consolidate"},
			document: func(i int) string {
				app := fmt.Sprintf("a%d", i)
				return node(i, "") + separator + runningOf(app, app+"-0", i, alike, fmt.Sprintf(exclusive, app))
			},
		},
		{Name: "configmaps", Says: "ConfigMaps, which no plan looks at, beside 50 pods", once: []string{others}, document: func(i int) string {
			return object("v1", "ConfigMap", fmt.Sprintf(`"name":"c%d","namespace":"default"`, i), `"data":{"a":"x"}`)
		}},
	}
}
