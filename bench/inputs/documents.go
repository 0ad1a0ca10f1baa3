package inputs

import (
	"fmt"
	"strings"
)

// separator stands between two documents of a file.
const separator = "\n---\n"

// alike are requests of pods that are all the same.
const alike = `{"cpu":"100m","memory":"128Mi"}`

// requests are those of the pods with a number: of thousands of different ones.
func requests(i int) string {
	return fmt.Sprintf(`{"cpu":"%dm","memory":"%dMi"}`, 100+(i*37)%3_900, 128+(i*53)%7_900)
}

// object is a document of a kind. More follows its metadata.
func object(version, kind, metadata, more string) string {
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{%s},%s}`, version, kind, metadata, more)
}

// containers is the spec of a pod with one container. More follows its containers.
func containers(requests, more string) string {
	return fmt.Sprintf(`{"containers":[{"name":"c","image":"i","resources":{"requests":%s}}]%s}`, requests, more)
}

func pod(i int, requests, more string) string {
	return object("v1", "Pod", fmt.Sprintf(`"name":"p%d","namespace":"default"`, i), `"spec":`+containers(requests, more))
}

// template is the selector and the template of a workload.
func template(name, requests, more string) string {
	return fmt.Sprintf(`"selector":{"matchLabels":{"app":"%[1]s"}},"template":{"metadata":{"labels":{"app":"%[1]s"}},"spec":%[2]s}`,
		name, containers(requests, more))
}

func deployment(name string, replicas int, requests, more string) string {
	return deploymentIn("default", name, replicas, requests, more)
}

func deploymentIn(namespace, name string, replicas int, requests, more string) string {
	return object("apps/v1", "Deployment", fmt.Sprintf(`"name":"%s","namespace":"%s"`, name, namespace),
		fmt.Sprintf(`"spec":{"replicas":%d,%s}`, replicas, template(name, requests, more)))
}

// web is a Deployment of small pods.
func web(replicas int) string { return deployment("web", replicas, alike, "") }

// pool is a NodePool of a class, with the label and the taint of a tenant where these are given.
func pool(name, class, label, taint string) string {
	more := ""
	if label != "" {
		more = fmt.Sprintf(`{"key":"tenant","operator":"In","values":["%s"]}`, label)
	}
	return poolWith(name, class, more, taint)
}

// poolWith is a NodePool with a further requirement.
func poolWith(name, class, requirement, taint string) string {
	all := []string{
		`{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}`,
		`{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]}`,
	}
	if requirement != "" {
		all = append(all, requirement)
	}
	taints := ""
	if taint != "" {
		taints = fmt.Sprintf(`,"taints":[{"key":"tenant","value":"%s","effect":"NoSchedule"}]`, taint)
	}
	return object("karpenter.sh/v1", "NodePool", fmt.Sprintf(`"name":"%s"`, name), fmt.Sprintf(
		`"spec":{"template":{"spec":{"nodeClassRef":{"group":"karpenter.azure.com","kind":"AKSNodeClass","name":"%s"},"requirements":[%s]%s}}}`,
		class, strings.Join(all, ","), taints))
}

// node is a ready node of NodePool default.
func node(i int, moreLabels string) string {
	return object("v1", "Node", fmt.Sprintf(`"name":"n%[1]d","labels":{"kubernetes.io/hostname":"n%[1]d","kubernetes.io/arch":"amd64",`+
		`"kubernetes.io/os":"linux","karpenter.sh/nodepool":"default","karpenter.sh/capacity-type":"on-demand",`+
		`"node.kubernetes.io/instance-type":"Standard_D4s_v5","topology.kubernetes.io/zone":"eastus-%[2]d","topology.kubernetes.io/region":"eastus",`+
		`"karpenter.sh/initialized":"true","karpenter.sh/registered":"true"%[3]s}`, i, 1+i%3, moreLabels),
		fmt.Sprintf(`"spec":{"providerID":"azure:///n%d"},"status":{"capacity":{"cpu":"4","memory":"16Gi","pods":"110"},`+
			`"allocatable":{"cpu":"4","memory":"16Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}`, i))
}

// running are so many pods on the node with a number, of one of 40 workloads.
func running(i, pods int) string {
	var out strings.Builder
	for k := range pods {
		out.WriteString(separator + runningOf(fmt.Sprintf("a%d", i%40), fmt.Sprintf("r%d-%d", i, k), i, requests(i%40), ""))
	}
	return out.String()
}

// runningOf is a pod of a workload on the node with a number. More follows its containers.
func runningOf(app, name string, node int, requests, more string) string {
	return object("v1", "Pod", fmt.Sprintf(`"name":"%[1]s","namespace":"default","uid":"%[1]s","labels":{"app":"%[2]s"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%[2]s","uid":"%[2]s","controller":true}]`, name, app),
		`"spec":`+containers(requests, fmt.Sprintf(`,"nodeName":"n%d"%s`, node, more))+`,"status":{"phase":"Running"}`)
}

// Text is a file of the kind with at most so many bytes, and how many documents it has.
func (k *Kind) Text(bytes int) (text []byte, documents int) {
	all := append([]string{
		pool("default", "default", "", ""), object("karpenter.azure.com/v1beta1", "AKSNodeClass", `"name":"default"`, `"spec":{}`),
	}, k.once...)
	text = []byte(strings.Join(all, separator))
	documents = len(all)
	for i := 0; k.document != nil; i++ {
		next := separator + k.document(i)
		if len(text)+len(next) > bytes {
			break
		}
		text = append(text, next...)
		documents += 1 + strings.Count(next[len(separator):], separator)
	}
	return text, documents
}
