package lab

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The components of the control plane, in the order in which they start.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
)

// supervisorName is what the supervisor itself is called in logs and status.
const supervisorName = "supervisor"

// components lists the control plane's parts in starting order.
func components() []string { return []string{Etcd, APIServer, Scheduler, ControllerManager} }

// DefaultServerName is the API server's name in DNS unless one is chosen, in the form that
// AKS gives.
const DefaultServerName = "nap-lab-dns-10000001.hcp.eastus.azmk8s.io"

// DefaultDir is the lab's folder, relative to the working directory.
const DefaultDir = ".lab"

// Config says what a lab consists of. The zero value is not usable: Binary is
// required.
type Config struct {
	// Dir is the lab's folder; empty means DefaultDir. It is created when
	// missing. One lab per folder; several folders run side by side.
	Dir string
	// Binary is the path of the nap-lab executable; see package binary.
	Binary string
	// Executable is the program of nap's controller, which the lab itself does not
	// start: it hands the path on to the services. See [Controller].
	Executable string
	// ServerName is the name of the API server in DNS, which its certificate has.
	// Nothing resolves it but the network of the lab's machines. Empty means
	// DefaultServerName.
	ServerName string
	// Nodes is the size of the fixed agent pool, 0 to 5000. The lab only hands
	// it on to the services.
	Nodes int
	// Ports names the TCP ports that services will listen on;
	// the lab reserves a free one for each and tells all through
	// Environment.Ports. A value of 0 means any free port, which stays the same
	// over restarts of the lab as long as it is free. Components of the control
	// plane can be given a fixed port under their own name.
	Ports map[string]int
	// Services run inside the supervisor's process once the API server is ready, each
	// when those before it in the list are.
	Services []Service
	// Charts are installed before services start, before the Manifests.
	Charts []Chart
	// Manifests are YAML documents applied (server side) before services start:
	// custom resource definitions first, and the rest once those are served.
	Manifests [][]byte
	// Audit is the name of a user whose requests to the API server are written to
	// logs/audit.log, one JSON event of Kubernetes' audit a line. Empty means none.
	Audit string
	// Kubernetes is the minor version that the control plane is of, as 1.36: its program's
	// own, or one of the three before. Empty means that of the folder, in a new one the
	// program's own.
	Kubernetes string
	// Profiles is a YAML document, a KubeSchedulerConfiguration, whose profiles the
	// scheduler has. Empty means the default one alone.
	Profiles []byte
	// NodeMonitorGracePeriod is how long a node may leave its lease without renewal before
	// the controller manager takes it for lost; at least 20 s, since kubelets renew every 10 s.
	// 0 means [DefaultNodeMonitorGracePeriod].
	NodeMonitorGracePeriod time.Duration
	// Progress receives one line for each step of starting and stopping, and for
	// each restart. Nil discards them. It is called from several goroutines, one
	// at a time.
	Progress func(line string)
}

// Service is something that lives in the supervisor's process next to the
// control plane and talks to it like any other client.
type Service interface {
	// Name is unique in the lab and names the log file: lower-case letters,
	// digits and dashes.
	Name() string
	// Run serves until ctx is done, and then returns soon. It calls env.Ready
	// once it can be used; the lab is not ready before. When Run returns while
	// ctx is not done it is called again after a pause, so it must be possible
	// to run it more than once.
	Run(ctx context.Context, env Environment) error
}

// Environment is what a service needs to know about its lab, and what the lab does
// for it.
type Environment struct {
	// Dir is the lab's folder as an absolute path.
	Dir string
	// Binary and Executable are those of Config.
	Binary, Executable string
	// Kubeconfig is the path of a kubeconfig with cluster-admin rights.
	Kubeconfig string
	// ControllerKubeconfig is the path of a kubeconfig for the user "nap", who
	// may do what the applied manifests grant and nothing else.
	ControllerKubeconfig string
	// Server is the API server's URL.
	Server string
	// ServerName is the API server's name in DNS: what its certificate says, and what
	// machines are told. Their network leads port 443 of it to Server.
	ServerName string
	// CA is the PEM certificate that vouches for Server and signs clients.
	CA []byte
	// ServingCert and ServingKey are the paths of the certificate that every
	// server of the lab on 127.0.0.1 shows, signed by CA, and of its key.
	ServingCert, ServingKey string
	// BootstrapToken lets a new machine ask for its node certificate.
	BootstrapToken string
	// KubernetesVersion is the version that the API server served when the lab was started,
	// such as "v1.37.1"; see [Upgrade].
	KubernetesVersion string
	// Nodes is Config.Nodes.
	Nodes int
	// Ports are the reserved TCP ports on 127.0.0.1 by name.
	Ports map[string]int
	// Log writes to the part's own log file.
	Log *slog.Logger
	// Ready is to be called by a service once it can be used, and NotReady while it
	// cannot, with why. More than one call does no harm.
	Ready    func()
	NotReady func(error)
	// Start starts a process under the supervisor's care.
	Start func(p Process) (*Running, error)
	// Network leads the API server to addresses of the cluster.
	Network *Network
}

// AdminConfig returns a fresh client configuration with cluster-admin rights and
// without a client-side rate limit.
func (e Environment) AdminConfig() (*rest.Config, error) { return clientConfig(e.Kubeconfig) }

func clientConfig(kubeconfig string) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	c.QPS = -1
	return c, nil
}

// maxNodes bounds Config.Nodes; Kubernetes itself is tested to 5,000 nodes.
const maxNodes = 5000

// DefaultNodeMonitorGracePeriod is that of Kubernetes from 1.32 on.
const DefaultNodeMonitorGracePeriod = 50 * time.Second

// complete fills in defaults and refuses what cannot work.
func (c Config) complete() (Config, error) {
	l, err := layoutOf(c.Dir)
	if err != nil {
		return c, err
	}
	c.Dir = string(l)
	if c.Binary == "" {
		return c, fmt.Errorf("the path of the nap-lab binary is missing")
	}
	if c.Nodes < 0 || c.Nodes > maxNodes {
		return c, fmt.Errorf("nodes = %d: must be between 0 and %d", c.Nodes, maxNodes)
	}
	c.NodeMonitorGracePeriod = cmp.Or(c.NodeMonitorGracePeriod, DefaultNodeMonitorGracePeriod)
	if c.NodeMonitorGracePeriod < 20*time.Second {
		return c, fmt.Errorf("node monitor grace period %s: must be at least 20s, since kubelets renew their leases every 10s",
			c.NodeMonitorGracePeriod)
	}
	c.ServerName = cmp.Or(c.ServerName, DefaultServerName)
	if msgs := validation.IsDNS1123Subdomain(c.ServerName); len(msgs) > 0 {
		return c, fmt.Errorf("server name %q: %s; give a host name alone, as %s", c.ServerName, strings.Join(msgs, "; "), DefaultServerName)
	}
	c.Progress = oneAtATime(c.Progress)
	for name, port := range c.Ports {
		if port < 0 || port > 65535 {
			return c, fmt.Errorf("port %q = %d: must be between 1 and 65535, or 0 for any", name, port)
		}
	}
	return c, c.checkNames()
}

// controllerName is the program of nap's controller.
const controllerName = "nap-controller"

// Controller finds the controller's program beside the one that runs.
func Controller() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the lab's own executable: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), controllerName)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the lab needs %s beside %s: %w; in a checkout, run: make build", controllerName, filepath.Base(self), err)
	}
	return path, nil
}

func oneAtATime(progress func(string)) func(string) {
	if progress == nil {
		return func(string) {}
	}
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		progress(line)
	}
}

// Validate says what cannot work about a configuration whose Binary is not known
// yet, so that a wrong flag is reported before a build, not after it.
func (c Config) Validate() error {
	if c.Binary == "" {
		c.Binary = "to be built"
	}
	_, err := c.complete()
	return err
}

// validName is what parts may be called.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func (c Config) checkNames() error {
	taken := append(components(), supervisorName)
	check := func(name string) error {
		if !validName.MatchString(name) {
			return fmt.Errorf("name %q of a lab part: must be lower-case letters, digits and dashes, at most 63", name)
		}
		if slices.Contains(taken, name) {
			return fmt.Errorf("name %q of a lab part is taken; taken are: %s", name, strings.Join(taken, ", "))
		}
		taken = append(taken, name)
		return nil
	}
	for _, s := range c.Services {
		if err := check(s.Name()); err != nil {
			return err
		}
	}
	return nil
}
