package scale

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var begun = metav1.NewTime(time.Unix(1_700_000_000, 0))

// owned is field ownership of the length that servers write for such an object.
func owned(writer, part string, fields int) metav1.ManagedFieldsEntry {
	raw := []byte(`{`)
	for i := range fields {
		raw = fmt.Appendf(raw, `"f:field-of-%s-%02d":{".":{},"f:value":{}},`, part, i)
	}
	raw = append(raw, `"f:last":{}}`...)
	return metav1.ManagedFieldsEntry{
		Manager: writer, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &begun,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}
}

// node is a node of AKS as its kubelet reports it, with the 50 images that one lists at
// most.
func node(i int) *corev1.Node {
	name := fmt.Sprintf("aks-default-%05d", i)
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(i), CreationTimestamp: begun,
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/region": "eastus", "topology.kubernetes.io/zone": fmt.Sprintf("eastus-%d", i%3+1),
				"node.kubernetes.io/instance-type": "Standard_D16s_v5", "karpenter.sh/nodepool": "default",
				"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
				"kubernetes.azure.com/cluster": "MC_group_cluster_eastus", "kubernetes.azure.com/node-image-version": "AKSUbuntu-2204gen2containerd",
			},
			Annotations: map[string]string{
				"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
				"csi.volume.kubernetes.io/nodeid": fmt.Sprintf(`{"disk.csi.azure.com":%q,"file.csi.azure.com":%q}`, name, name),
			},
			ManagedFields: []metav1.ManagedFieldsEntry{owned("kubelet", "status", 90), owned("cloud-node-manager", "labels", 20)},
		},
		Spec: corev1.NodeSpec{ProviderID: "azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/MC_group_cluster_eastus" +
			"/providers/Microsoft.Compute/virtualMachines/" + name},
		Status: corev1.NodeStatus{
			Capacity:    amounts("16", "65536Mi", "250"),
			Allocatable: amounts("15740m", "60000Mi", "250"),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: fmt.Sprintf("%032d", i), SystemUUID: fmt.Sprintf("%036d", i), BootID: fmt.Sprintf("%036d", i),
				KernelVersion: "5.15.0-1073-azure", OSImage: "Ubuntu 22.04.5 LTS", ContainerRuntimeVersion: "containerd://1.7.23-1",
				KubeletVersion: "v1.33.2", OperatingSystem: "linux",
				Architecture: "amd64",
			},
		},
	}
	for _, kind := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable",
		"KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart", "VMEventScheduled", "FilesystemCorruptionProblem"} {
		out.Status.Conditions = append(out.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, LastHeartbeatTime: begun, LastTransitionTime: begun,
			Reason: "No" + string(kind), Message: "the node has no " + string(kind) + " as its kubelet sees it",
		})
	}
	for k := range 50 {
		image := fmt.Sprintf("registry.example/oss/kubernetes/component-%02d", k)
		out.Status.Images = append(out.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", image, k), image + ":v1.33.2-20250612.1"}, SizeBytes: int64(k) << 20,
		})
	}
	return out
}

func amounts(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse(pods), corev1.ResourceEphemeralStorage: resource.MustParse("119703055367"),
		"hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
}

// pod is a running replica of one of deployments Deployments: a web server with a sidecar.
func pod(i, nodes, deployments int) *corev1.Pod {
	d := i % deployments
	app := fmt.Sprintf("app-%03d", d)
	hash := fmt.Sprintf("%08x", d*7919)
	yes, grace := true, int64(30)
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("%s-%s-%05d", app, hash, i), GenerateName: app + "-" + hash + "-",
			UID: types.UID(fmt.Sprintf("10000000-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(i), CreationTimestamp: begun,
			Labels:      map[string]string{"app": app, "pod-template-hash": hash, "app.kubernetes.io/part-of": "shop"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": fmt.Sprintf("%064x", d)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash,
				UID: types.UID(fmt.Sprintf("20000000-0000-4000-8000-%012d", d)), Controller: &yes,
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{owned("kube-controller-manager", "spec", 40), owned("kubelet", "status", 30)},
		},
		Spec: corev1.PodSpec{
			NodeName:           fmt.Sprintf("aks-default-%05d", i%nodes),
			ServiceAccountName: "shop", DeprecatedServiceAccount: "shop", SchedulerName: "default-scheduler",
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{container("web", d), container("sidecar", d)},
			Volumes:    []corev1.Volume{serviceAccount(), configuration(app)},
			Tolerations: []corev1.Toleration{
				tolerated("node.kubernetes.io/not-ready"),
				tolerated("node.kubernetes.io/unreachable"),
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.1.2.3", PodIP: "10.2.3.4", PodIPs: []corev1.PodIP{{IP: "10.2.3.4"}}, StartTime: &begun,
			QOSClass: corev1.PodQOSBurstable,
		},
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: begun,
		})
	}
	for k := range out.Spec.Containers {
		c := &out.Spec.Containers[k]
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: fmt.Sprintf("%s@sha256:%064x", c.Image, d), ContainerID: fmt.Sprintf("containerd://%064x", i*2+k),
			Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begun}},
			Resources: c.Resources.DeepCopy(), AllocatedResources: c.Resources.Requests.DeepCopy(),
		})
	}
	return out
}

func container(name string, d int) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP,
		}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	out := corev1.Container{
		Name: name, Image: fmt.Sprintf("registry.example/shop/%s-%03d:v1.2.3", name, d), Args: []string{"--listen=:8080", "--log=info"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				"cpu":    *resource.NewMilliQuantity(int64(100+d%13*50), resource.DecimalSI),
				"memory": *resource.NewQuantity(int64(128+d%7*64)<<20, resource.BinarySI),
			},
			Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/shop", ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe, ReadinessProbe: probe, TerminationMessagePath: "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
	}
	for k := range 12 {
		out.Env = append(out.Env, corev1.EnvVar{
			Name: fmt.Sprintf("SHOP_SETTING_%02d", k), Value: fmt.Sprintf("http://service-%02d.shop.svc:8080", k),
		})
	}
	return out
}

func serviceAccount() corev1.Volume {
	seconds, mode := int64(3607), int32(420)
	return corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

// tolerated is what admission adds to every pod.
func tolerated(key string) corev1.Toleration {
	seconds := int64(300)
	return corev1.Toleration{
		Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
	}
}

func configuration(name string) corev1.Volume {
	return corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}}}
}
