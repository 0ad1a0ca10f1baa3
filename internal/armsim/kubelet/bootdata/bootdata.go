package bootdata

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// The variables of the boot script that a kubelet reads. The names are those of
// AKS's own node bootstrapping.
const (
	KeyServer     = "API_SERVER_NAME"             // host, host:port or https URL
	KeyCA         = "KUBE_CA_CRT"                 // base64 of the PEM certificates
	KeyToken      = "TLS_BOOTSTRAP_TOKEN"         // bootstrap token id.secret
	KeyVersion    = "KUBERNETES_VERSION"          // with or without a leading v
	KeyNodeLabels = "KUBELET_NODE_LABELS"         // k=v,k=v
	KeyFlags      = "KUBELET_FLAGS"               // flags of the kubelet
	KeyGPUNode    = "GPU_NODE"                    // true on machines with GPUs
	KeyGPUDriver  = "CONFIG_GPU_DRIVER_IF_NEEDED" // false leaves the driver out
)

// Data is what a boot script tells the kubelet.
type Data struct {
	Server  string // URL of the API server, always https
	Name    string // the API server's name, which the machine's network has to know
	CA      []byte // PEM
	Token   string
	Version string // with a leading v
	Labels  map[string]string
	Flags   Flags
	// GPUDriver says that the machine installs a GPU driver at boot, without
	// which no device plugin finds a GPU.
	GPUDriver bool

	node *nodeconfig.Configuration // what Read has read
}

// Parse reads a decoded boot script. It returns every fault of the
// script at once, each with the variable it is in; with any of them a real
// kubelet would not start.
func Parse(script string) (Data, error) {
	values, bad := assignments(script)
	var errs []error
	get := func(key string, required bool) string {
		switch {
		case bad[key] != nil:
			errs = append(errs, fmt.Errorf("%s: %w", key, bad[key]))
		case required && values[key] == "":
			errs = append(errs, fmt.Errorf("%s: missing or empty in the boot script", key))
		}
		return values[key]
	}
	check := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}

	var d Data
	var err error
	if v := get(KeyServer, true); v != "" {
		d.Server, err = serverURL(v)
		check(KeyServer, err)
	}
	if v := get(KeyCA, true); v != "" {
		d.CA, err = caCertificates(v)
		check(KeyCA, err)
	}
	d.Token = get(KeyToken, true)
	if v := get(KeyVersion, true); v != "" {
		parts := versionPattern.FindStringSubmatch(v)
		if parts == nil {
			check(KeyVersion, fmt.Errorf("%q is no version: want major.minor.patch", v))
		} else {
			d.Version = "v" + parts[1]
		}
	}
	d.Labels, err = parseNodeLabels(get(KeyNodeLabels, false))
	check(KeyNodeLabels, err)
	d.Flags, err = ParseFlags(get(KeyFlags, false))
	check(KeyFlags, err)
	gpu, err := parseBool(get(KeyGPUNode, false), false)
	check(KeyGPUNode, err)
	driver, err := parseBool(get(KeyGPUDriver, false), true)
	check(KeyGPUDriver, err)
	d.GPUDriver = gpu && driver
	return d, errors.Join(errs...)
}

// serverURL accepts host, host:port and https URLs.
func serverURL(v string) (string, error) {
	if !strings.Contains(v, "://") {
		v = "https://" + v
	}
	u, err := url.Parse(v)
	if err != nil {
		return "", fmt.Errorf("%q is no address: %w", v, err)
	}
	if u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q: want host, host:port or https://host:port", v)
	}
	return "https://" + u.Host, nil
}

// caCertificates decodes the base64 form and checks that there is a certificate in it.
func caCertificates(v string) ([]byte, error) {
	pem, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in PEM form in it")
	}
	return pem, nil
}

func parseBool(v string, unset bool) (bool, error) {
	switch strings.ToLower(v) {
	case "":
		return unset, nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q: want true or false", v)
}

// parseNodeLabels reads k=v,k=v and refuses the labels that a kubelet refuses
// to give to its own node.
func parseNodeLabels(v string) (map[string]string, error) {
	labels := map[string]string{}
	var errs []error
	for _, pair := range splitList(v) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("%q: want key=value", pair))
			continue
		}
		if err := validLabel(key, value); err != nil {
			errs = append(errs, err)
			continue
		}
		if reserved(key) {
			errs = append(errs, fmt.Errorf("label %q: a kubelet may not set it on its own node; "+
				"in kubernetes.io and k8s.io only well-known node labels and the kubelet. and node. prefixes are allowed", key))
			continue
		}
		labels[key] = value
	}
	return labels, errors.Join(errs...)
}

// ownLabels are the labels in Kubernetes' own domains that a kubelet may set.
var ownLabels = []string{
	corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable,
}

// reserved reports whether the label lies in Kubernetes' own domains and is not
// for kubelets to set.
func reserved(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || slices.Contains(ownLabels, key) {
		return false
	}
	within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	if within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return false
	}
	return within("kubernetes.io") || within("k8s.io")
}

// splitList splits at commas and drops empty elements.
func splitList(v string) []string {
	return slices.DeleteFunc(strings.Split(v, ","), func(s string) bool { return strings.TrimSpace(s) == "" })
}
