package command

import (
	"errors"
	"fmt"
	"os"

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
		return nil, errors.New("no cluster to work with: give --kubeconfig, set KUBECONFIG, or run in a pod")
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w: choose another with --kubeconfig or --context", err)
	}
	return config, nil
}
