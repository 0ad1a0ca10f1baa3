package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ConfigPath is where the node's program expects its configuration.
const ConfigPath = "/opt/azure/containers/aks-node-controller-config.json"

// MaxCustomDataBytes is how long custom data may be before it is encoded, by the
// reference of osProfile.customData of virtual machines.
const MaxCustomDataBytes = 65535

// boundary separates the parts of the custom data. It is in neither: base64 has no
// hyphen.
const boundary = "==nap-custom-data=="

// customData is a MIME document of two parts, for cloud-init. The first runs early in
// every boot: it writes the configuration for root alone, and starts the node's
// program, by its launcher where the image has one. The second says that cloud-init
// has nothing else to do.
const customData = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="` + boundary + `"

--` + boundary + `
Content-Type: text/cloud-boothook; charset="us-ascii"
MIME-Version: 1.0
Content-Transfer-Encoding: 7bit

#cloud-boothook
#!/bin/bash
set -euo pipefail
mkdir -p /opt/azure/containers /var/log/azure
nohup /bin/bash /opt/azure/containers/provision_preload.sh >/dev/null 2>&1 &
install -m 0600 /dev/null ` + ConfigPath + `
base64 -d >` + ConfigPath + ` <<'EOF'
%s
EOF
if [ -f /opt/azure/containers/aks-node-controller-launcher.sh ]; then
  nohup /bin/bash /opt/azure/containers/aks-node-controller-launcher.sh >/var/log/azure/aks-node-controller.output 2>&1 &
else
  systemctl start --no-block aks-node-controller.service
fi

--` + boundary + `
Content-Type: text/cloud-config; charset="us-ascii"
MIME-Version: 1.0
Content-Transfer-Encoding: 7bit

#cloud-config
{}

--` + boundary + `--
`

// JSON is the configuration as it lies on the machine, on one line, with the bootstrap
// token.
func (c *Config) JSON() ([]byte, error) {
	whole := *c
	whole.Bootstrapping.TLSBootstrappingToken = c.Bootstrapping.TLSBootstrappingToken.InBootData()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // "<" of eviction thresholds stays readable
	if err := encoder.Encode(&whole); err != nil {
		return nil, fmt.Errorf("write the node configuration: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// CustomData is the machine's osProfile.customData, in base64. The error says by how
// much it is too long for Azure, and what makes it long.
func (c *Config) CustomData() (string, error) {
	text, err := c.JSON()
	if err != nil {
		return "", err
	}
	data := fmt.Sprintf(customData, base64.StdEncoding.EncodeToString(text))
	if len(data) > MaxCustomDataBytes {
		return "", &TooLongError{Bytes: len(data), CustomCAs: len(c.CustomCACerts)}
	}
	return base64.StdEncoding.EncodeToString([]byte(data)), nil
}

// TooLongError says that a machine would be told more than Azure passes on.
type TooLongError struct {
	// Bytes is the length of the custom data.
	Bytes int
	// CustomCAs is how many certificates of the cluster are in it.
	CustomCAs int
}

func (e *TooLongError) Error() string {
	what := "shorten the node class's kubelet settings and the NodePool's labels and taints"
	if e.CustomCAs > 0 {
		what = fmt.Sprintf("remove some of the cluster's %d custom CA certificates (az aks update --custom-ca-trust-certificates)", e.CustomCAs)
	}
	return fmt.Sprintf("the machine's custom data has %d bytes, Azure passes on at most %d: %s", e.Bytes, MaxCustomDataBytes, what)
}

// Extension is the VM extension by which Azure learns whether a boot worked. Its
// instance view ends up with the exit code and the output of the node's program.
type Extension struct {
	Name, Publisher, Type, TypeHandlerVersion string
	AutoUpgradeMinorVersion                   bool
	// ProtectedSettings are encrypted on the way to the machine.
	ProtectedSettings map[string]string
}

// ProvisioningExtension waits on the machine for the end of its provisioning. Its name
// is the one that the provider of AKS's own node provisioning gives it.
func ProvisioningExtension() Extension {
	return Extension{
		Name: "cse-agent-karpenter", Publisher: "Microsoft.Azure.Extensions", Type: "CustomScript", TypeHandlerVersion: "2.0",
		AutoUpgradeMinorVersion: true,
		ProtectedSettings:       map[string]string{"commandToExecute": "/opt/azure/containers/aks-node-controller provision-wait"},
	}
}

// OldestImage is the first version of AKS's node images that understands what is
// written here. It is that of the AgentBaker release v0.20251011.0: the first whose own
// reader and provisioning functions take every golden configuration of this package
// without an unknown field (judged on all releases' own sources, by bisection; the release
// before, v0.20251009.0, does not know the fields of secure TLS bootstrapping).
const OldestImage = "202510.11.0"

// Understands reports whether images of a version, such as 202606.09.0, understand what
// is written here. What is no version is taken to.
func Understands(imageVersion string) bool {
	has, err := imageNumbers(imageVersion)
	if err != nil {
		return true
	}
	oldest, err := imageNumbers(OldestImage)
	return err != nil || slices.Compare(has, oldest) >= 0
}

// imageNumbers are the parts of an image version.
func imageNumbers(version string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no image version: %w", version, err)
		}
		out = append(out, n)
	}
	return out, nil
}
