package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ClusterConfig finds the API server as kubectl does.
func ClusterConfig(kubeconfig, kubeContext string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if kubeconfig != "" {
		if _, err := os.Stat(kubeconfig); err != nil {
			return nil, fmt.Errorf("--kubeconfig %s: %w: give the path of an existing file", kubeconfig, errors.Unwrap(err))
		}
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: kubeContext}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("no cluster to work with%s: give --kubeconfig, set KUBECONFIG, or run in a pod", LostKubeconfig())
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w: choose another with --kubeconfig or --context", err)
	}
	return config, nil
}

// LostKubeconfig names the files of KUBECONFIG that are not there, where none of them is, to
// follow on a sentence; empty otherwise.
func LostKubeconfig() string {
	var out string
	for _, name := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if _, err := os.Stat(name); err == nil {
			return ""
		}
		out += ": KUBECONFIG names " + name + ", which is not there"
	}
	return out
}

// Cluster are the flags by which kubectl chooses a cluster and a user.
type Cluster struct {
	Kubeconfig, Context string
	// As and AsGroups are the user and the groups to impersonate.
	As       string
	AsGroups []string
}

// Add adds the flags.
func (c *Cluster) Add(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "the kubeconfig file (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&c.Context, "context", "", "the context of the kubeconfig (default: its current one)")
	flags.StringVar(&c.As, "as", "", "the user to impersonate")
	flags.StringArrayVar(&c.AsGroups, "as-group", nil, "a group to impersonate (repeatable)")
}

// Chosen reports whether a flag says which cluster.
func (c *Cluster) Chosen() bool { return c.Kubeconfig != "" || c.Context != "" }

// Found reports whether kubectl would find a cluster here.
func (c *Cluster) Found() bool {
	if c.Chosen() {
		return true
	}
	raw, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil || raw.CurrentContext != "" {
		return true // what is wrong with it, Config says
	}
	_, err = rest.InClusterConfig()
	return err == nil
}

// loader reads the kubeconfig as the flags say.
func (c *Cluster) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
}

// Config finds the API server. An unknown context is refused with those that there are.
func (c *Cluster) Config() (*rest.Config, error) {
	if raw, err := c.loader().RawConfig(); err == nil && c.Context != "" && raw.Contexts[c.Context] == nil {
		return nil, fmt.Errorf("--context: got %q, the kubeconfig has: %s", c.Context,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "), "none"))
	}
	config, err := ClusterConfig(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: c.As, Groups: c.AsGroups}
	return config, nil
}

// Name is what people call the cluster: the context, or "the cluster" in a pod.
func (c *Cluster) Name() string {
	if c.Context != "" {
		return c.Context
	}
	raw, err := c.loader().RawConfig()
	if err != nil || raw.CurrentContext == "" {
		return "the cluster"
	}
	return raw.CurrentContext
}

// Namespace is the one that the context names, or "default".
func (c *Cluster) Namespace() string {
	if namespace, _, err := c.loader().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return "default"
}
