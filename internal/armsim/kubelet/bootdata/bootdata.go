package bootdata

import (
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// Data is what custom data tell the kubelet.
type Data struct {
	Name    string // the API server's, which the machine's network has to know
	Server  string // URL of the API server, with port 443 of its name
	CA      []byte // PEM; what is no base64 in the configuration ends as nothing
	Version string // of Kubernetes, with a leading v
	// Token and Flags are valid once [Data.StartKubelet] has been called.
	Token string
	Flags kubeletflags.Flags
	// GPUDriver says that the machine installs a GPU driver at boot, without
	// which no device plugin finds a GPU.
	GPUDriver bool
	// DevicePlugin says that the machine runs NVIDIA's device plugin itself, and the exporter
	// of its metrics: AKS's managed GPU experience.
	DevicePlugin bool

	node nodeconfig.Configuration // what Read has read
}
