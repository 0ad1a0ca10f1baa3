package lab

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

const (
	// serviceIPs is the range of ClusterIPs. Nothing in the lab routes to them.
	serviceIPs = "10.0.0.0/16"
	// firstServiceIP is the address of the Service "kubernetes" in that range.
	firstServiceIP = "10.0.0.1"
	// Issuer is who service account tokens are from.
	Issuer = "https://kubernetes.default.svc.cluster.local"
)

// schedulerConfiguration is the scheduler's configuration file. The client-side
// rate limit is raised, because with the default of 50 per second a lab measures
// the limit and not the scheduler.
const schedulerConfiguration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 1000
  burst: 2000
leaderElection:
  leaderElect: false
`

// componentArgs returns the command line of a component of the control plane
// after the program's name. Ports are by component name.
func componentArgs(l layout, component string, ports map[string]int) []string {
	port := strconv.Itoa(ports[component])
	var args []string
	switch component {
	case Etcd:
		args = []string{"--data-dir=" + l.etcd(), "--client-port=" + port}
	case APIServer:
		args = append(servingArgs(l, port), apiServerArgs(l, ports[Etcd])...)
	case Scheduler:
		args = append(servingArgs(l, port), delegationArgs(l, component)...)
		args = append(args, "--config="+l.schedulerConfig())
	case ControllerManager:
		args = append(servingArgs(l, port), delegationArgs(l, component)...)
		args = append(args, controllerManagerArgs(l)...)
	}
	return append([]string{component}, args...)
}

// servingArgs let a component listen on loopback with the lab's certificate.
func servingArgs(l layout, port string) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port,
		"--tls-cert-file=" + l.pki(servingCert),
		"--tls-private-key-file=" + l.pki(servingKey),
	}
}

// delegationArgs let a component ask the API server who a caller is and what it
// may do, so that its metrics can be read with the lab's credentials.
func delegationArgs(l layout, component string) []string {
	return []string{
		"--authentication-kubeconfig=" + l.kubeconfig(component),
		"--authorization-kubeconfig=" + l.kubeconfig(component),
		"--authentication-tolerate-lookup-failure=true",
	}
}

func apiServerArgs(l layout, etcdPort int) []string {
	return []string{
		"--etcd-servers=http://127.0.0.1:" + strconv.Itoa(etcdPort),
		// A loopback address is no valid endpoint of the Service "kubernetes",
		// so that Service stays without endpoints.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--client-ca-file=" + l.pki(caCert),
		"--authorization-mode=Node,RBAC",
		// The second one, which AKS has not, wants a permission of clients which make
		// objects that keep their owner: what nap makes has to pass where it is on.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--enable-bootstrap-token-auth=true",
		// How the API server proves to those that serve a part of its API who it is, and
		// how they learn from it who asks.
		"--proxy-client-cert-file=" + l.pki(proxyClientCert),
		"--proxy-client-key-file=" + l.pki(proxyClientKey),
		"--requestheader-client-ca-file=" + l.pki(caCert),
		"--requestheader-allowed-names=" + ProxyClient,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--service-account-key-file=" + l.pki(serviceAccountKey),
		"--service-account-signing-key-file=" + l.pki(serviceAccountKey),
		"--service-account-issuer=" + Issuer,
		"--service-cluster-ip-range=" + serviceIPs,
		"--allow-privileged=true",
		// How the API server reaches pods and kubelets, and how it proves to these who
		// it is.
		"--egress-selector-config-file=" + l.egressConfig(),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + l.pki(kubeletClientCert),
		"--kubelet-client-key=" + l.pki(kubeletClientKey),
	}
}

func controllerManagerArgs(l layout) []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(ControllerManager),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.pki(serviceAccountKey),
		"--root-ca-file=" + l.pki(caCert),
		// With these two, requests for node certificates are signed.
		"--cluster-signing-cert-file=" + l.pki(caCert),
		"--cluster-signing-key-file=" + l.pki(caKey),
		"--allocate-node-cidrs=false",
		// As for the scheduler: the defaults of 20 and 30 would be the bottleneck.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		// The lab's Azure is many times faster than the real one; with the default of
		// 15 s all else would wait for the autoscaler of pods.
		"--horizontal-pod-autoscaler-sync-period=2s",
	}
}

// schedulerProfiles is the part of a scheduler's configuration file that says its profiles.
func schedulerProfiles(file []byte) ([]byte, error) {
	if len(file) == 0 {
		return nil, nil
	}
	var given struct {
		Kind     string `json:"kind"`
		Profiles []any  `json:"profiles"`
	}
	if err := yaml.Unmarshal(file, &given); err != nil {
		return nil, fmt.Errorf("scheduler profiles: %w", err)
	}
	if given.Kind != "KubeSchedulerConfiguration" || len(given.Profiles) == 0 {
		return nil, fmt.Errorf("scheduler profiles: got kind %q with %d profiles, must be a KubeSchedulerConfiguration with profiles",
			given.Kind, len(given.Profiles))
	}
	return yaml.Marshal(map[string]any{"profiles": given.Profiles})
}

// egressConfiguration has the API server ask the supervisor, on a unix socket, for each
// connection into the cluster; see [Network].
const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

// auditPolicy has the requests of one user written down, without what they carry.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
- level: None
`

// auditArgs have the API server write down the requests that the policy names.
func auditArgs(l layout) []string {
	return []string{"--audit-policy-file=" + l.auditPolicy(), "--audit-log-path=" + l.log("audit")}
}

// writeComponentConfigs writes the configuration files that the command lines
// refer to.
func writeComponentConfigs(l layout, socket string, profiles []byte) error {
	profiles, err := schedulerProfiles(profiles)
	if err != nil {
		return err
	}
	data := fmt.Appendf(nil, schedulerConfiguration, l.kubeconfig(Scheduler))
	if err := writeSecret(l.schedulerConfig(), append(data, profiles...)); err != nil {
		return fmt.Errorf("scheduler configuration: %w", err)
	}
	if err := writeSecret(l.egressConfig(), fmt.Appendf(nil, egressConfiguration, socket)); err != nil {
		return fmt.Errorf("egress configuration: %w", err)
	}
	return nil
}
