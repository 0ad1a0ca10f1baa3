package bootdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/cloudinit"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// What an AKS node image has that boot data use.
const (
	configFile     = "/opt/azure/containers/aks-node-controller-config.json"
	launcher       = "/opt/azure/containers/aks-node-controller-launcher.sh"
	preload        = "/opt/azure/containers/provision_preload.sh"
	controllerUnit = "aks-node-controller.service"
	// WaitCommand is the command by which an extension waits for the end of provisioning.
	WaitCommand = "/opt/azure/containers/aks-node-controller provision-wait"
)

// image are the files of the node image.
func image() map[string]cloudinit.File {
	program := cloudinit.File{Mode: 0o755}
	return map[string]cloudinit.File{launcher: program, preload: program, "/etc/systemd/system/" + controllerUnit: {Mode: 0o644}}
}

// exporterLabel is on nodes that run the exporter of GPU metrics.
const exporterLabel = "kubernetes.azure.com/dcgm-exporter"

// Exit codes of the image's provisioning, by the names that they have in
// parts/linux/cloud-init/artifacts/cse_helpers.sh of https://github.com/Azure/AgentBaker.
const (
	exitConnect    = 51  // ERR_K8S_API_SERVER_CONN_FAIL
	exitLookup     = 52  // ERR_K8S_API_SERVER_DNS_LOOKUP_FAIL
	exitInstall    = 204 // ERR_K8S_INSTALL_ERR
	exitController = 240 // ERR_AKS_NODE_CONTROLLER_ERROR
)

// ErrNotStarted means that nothing on the machine has begun to provision it. An extension that waits
// for the end waits until time is up.
var ErrNotStarted = errors.New("the machine's provisioning is never started")

// Failure is the end of a provisioning that has failed.
type Failure struct {
	ExitCode int
	Reason   string // the last lines of the output
	// early tells a failure of the node's program, before the provisioning scripts ran.
	early bool
}

// Error implements error.
func (f *Failure) Error() string {
	return fmt.Sprintf("provisioning ended with exit code %d: %s", f.ExitCode, f.Reason)
}

// LookupFailed is the end when the API server's name is none that the network knows.
func LookupFailed(name string) *Failure {
	return &Failure{ExitCode: exitLookup, Reason: fmt.Sprintf(
		"nslookup -timeout=15 -retry=0 %s failed: server can't find %s: NXDOMAIN\nAPI server connection check code: %d", name, name, exitLookup)}
}

// ConnectFailed is the end when the API server does not answer at its name, or shows a
// certificate that the machine does not trust.
func ConnectFailed(name string, err error) *Failure {
	return &Failure{ExitCode: exitConnect, Reason: fmt.Sprintf(
		"curl --cacert %s https://%s:443: %s\nAPI server connection check code: %d", kubeletflags.CAFile, name, err, exitConnect)}
}

// Read does what an AKS node image does with custom data before it looks for the API
// server: cloud-init, the configuration's checks, the installation of the kubelet. It fails
// with [ErrNotStarted] or a [Failure].
func Read(customData []byte) (Data, error) {
	machine, err := cloudinit.Boot(customData, image())
	config, ok := started(machine)
	if !ok {
		return Data{}, notStarted(machine, err)
	}
	early := func(format string, args ...any) (Data, error) {
		return Data{}, &Failure{ExitCode: exitController, Reason: fmt.Sprintf(format, args...), early: true}
	}
	if config.Mode&0o077 != 0 {
		// A real node does not look at this.
		return early("%s has mode %#o: it holds credentials, and every user of the machine can read it; write it with mode 0600",
			configFile, config.Mode)
	}
	c, bad := nodeconfig.Parse(config.Data)
	if err := c.Validate(); err != nil {
		if bad != nil {
			return early("%s; AKSNodeConfig was read in part only: %s", err, bad)
		}
		return early("%s", err)
	}
	if !versionPattern.MatchString(c.KubernetesVersion) {
		return Data{}, &Failure{ExitCode: exitInstall, Reason: fmt.Sprintf("kubelet %q cannot be installed", c.KubernetesVersion)}
	}
	d := Data{
		Server: "https://" + c.APIServerConfig.APIServerName + ":443", Name: c.APIServerConfig.APIServerName,
		Version: "v" + strings.TrimPrefix(c.KubernetesVersion, "v"), node: c,
	}
	d.CA, _ = base64.StdEncoding.DecodeString(c.KubernetesCACert)
	if c.GPUConfig.EnableNvidia != nil {
		d.GPUDriver = *c.GPUConfig.EnableNvidia && c.GPUConfig.ConfigGPUDriver
		d.DevicePlugin = d.GPUDriver && c.GPUConfig.EnableManagedGPU
	}
	return d, nil
}

// Document is the AKSNodeConfig that custom data leave on the machine, as its program
// finds it. It fails with [ErrNotStarted].
func Document(customData []byte) ([]byte, error) {
	machine, err := cloudinit.Boot(customData, image())
	config, ok := started(machine)
	if !ok {
		return nil, notStarted(machine, err)
	}
	return config.Data, nil
}

var versionPattern = regexp.MustCompile(`^v?(\d+\.\d+\.\d+([-+.][0-9A-Za-z.+-]+)?)$`)

// started is the configuration that the node's program was started with. The launcher ends
// without a word where there is none yet.
func started(m cloudinit.Machine) (cloudinit.File, bool) {
	for _, s := range m.Started {
		if s.Name == launcher || s.Name == controllerUnit {
			f, ok := s.Files[configFile]
			return f, ok
		}
	}
	return cloudinit.File{}, false
}

func notStarted(m cloudinit.Machine, err error) error {
	reason := "custom data start neither " + launcher + " nor " + controllerUnit
	if _, ok := m.Files[configFile]; !ok {
		reason = "custom data write no " + configFile
	} else if len(m.Started) > 0 {
		reason = "custom data write " + configFile + " after the program that reads it"
	}
	if err != nil {
		reason += "; " + err.Error()
	}
	return fmt.Errorf("%w: %s", ErrNotStarted, reason)
}

// StartKubelet starts the kubelet with what it was given. The error says why it ends again
// at once; systemd then starts it over and over, while the provisioning counts as done.
func (d *Data) StartKubelet() error {
	var errs []error
	flags, err := kubeletflags.Of(d.Version, d.node.KubeletConfig)
	errs = append(errs, err)
	d.Flags = flags
	if d.DevicePlugin && d.Flags.Labels != nil {
		d.Flags.Labels[exporterLabel] = "enabled" // by which Azure Monitor finds the exporter
	}
	b := d.node.BootstrappingConfig
	switch {
	case d.node.PreProvisionOnly:
		errs = append(errs, errors.New("pre_provision_only: the machine prepares an image and joins no cluster"))
	case b.BootstrappingAuthMethod == "BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING":
		errs = append(errs, errors.New("secure TLS bootstrapping: the cluster answers no such requests"))
	case b.TLSBootstrappingToken == nil || *b.TLSBootstrappingToken == "":
		errs = append(errs, errors.New("unable to load bootstrap kubeconfig: there is no tls_bootstrapping_token"))
	default:
		d.Token = *b.TLSBootstrappingToken
	}
	if d.node.KubeBinaryConfig.PodInfraContainerImageURL == "" {
		// A real kubelet starts; but no pod does, the network's agent neither, so that
		// the node never becomes Ready.
		errs = append(errs, errors.New("containerd: sandbox_image is empty (pod_infra_container_image_url): no pod can be started"))
	}
	return errors.Join(errs...)
}
