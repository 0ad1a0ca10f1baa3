package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	case clientcmd.IsEmptyConfig(err) && len(contextsOf(rules)) > 0:
		return nil, fmt.Errorf("the kubeconfig has no current context: choose one with --context: %s", strings.Join(contextsOf(rules), ", "))
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("no cluster to work with%s: give --kubeconfig, set KUBECONFIG, or run in a pod", LostKubeconfig())
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w: choose another with --kubeconfig or --context", err)
	}
	return config, nil
}

// contextsOf are the names of the contexts of a kubeconfig, in order; none where it cannot be read.
func contextsOf(rules *clientcmd.ClientConfigLoadingRules) []string {
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
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
	// RequestTimeout is how long the answer to a request may take to begin; 0 means no limit.
	RequestTimeout time.Duration
}

// requestTimeout is what kubectl gives its discovery.
const requestTimeout = 32 * time.Second

// Add adds the flags.
func (c *Cluster) Add(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "the kubeconfig file (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&c.Context, "context", "", "the context of the kubeconfig (default: its current one)")
	flags.StringVar(&c.As, "as", "", "the user to impersonate")
	flags.StringArrayVar(&c.AsGroups, "as-group", nil, "a group to impersonate (repeatable)")
	c.RequestTimeout = requestTimeout
	flags.Var((*patience)(&c.RequestTimeout), "request-timeout",
		"how long the API server may take to begin an answer; 0 for no limit")
}

// patience is a time to wait as a flag, refused when it is read: not every answer asks a cluster.
type patience time.Duration

// String implements pflag.Value.
func (p *patience) String() string { return time.Duration(*p).String() }

// Type implements pflag.Value.
func (*patience) Type() string { return "duration" }

// Set implements pflag.Value.
func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("allowed are 0s (no limit) and more")
	}
	*p = patience(d)
	return err
}

// Chosen reports whether a flag says which cluster.
func (c *Cluster) Chosen() bool { return c.Kubeconfig != "" || c.Context != "" }

// Found reports whether kubectl would find a cluster here.
func (c *Cluster) Found() bool {
	if c.Chosen() {
		return true
	}
	raw, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil || raw.CurrentContext != "" || len(raw.Contexts) > 0 {
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

// Config finds the API server. An unknown context is refused with those that there are. All
// requests end with the context, those too for which client libraries have none of their own.
func (c *Cluster) Config(ctx context.Context) (*rest.Config, error) {
	if raw, err := c.loader().RawConfig(); err == nil && c.Context != "" && raw.Contexts[c.Context] == nil {
		return nil, fmt.Errorf("--context: got %q, the kubeconfig has: %s", c.Context,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "), "none"))
	}
	config, err := ClusterConfig(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{ctx, c.RequestTimeout, next} })
	config.Impersonate = rest.ImpersonationConfig{UserName: c.As, Groups: c.AsGroups}
	return config, nil
}

// bounded ends requests with a context, and those whose answer does not begin within a time:
// the whole of a large list, or what is followed, may take longer. The libraries' discovery
// does not ask the context of the call that needs it.
type bounded struct {
	ctx    context.Context
	within time.Duration // 0 means no limit
	next   http.RoundTripper
}

// errSilent is the end of a request whose answer has not begun in time. It is a timeout, as
// those of package net are.
type errSilent struct{}

func (errSilent) Error() string { return "the answer has not begun in time" }

// Timeout makes it one to those who ask.
func (errSilent) Timeout() bool { return true }

// Temporary is part of net.Error.
func (errSilent) Temporary() bool { return false }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(b.ctx, func() { cancel(b.ctx.Err()) })
	end := func() { stop(); cancel(nil) }
	if b.within > 0 {
		timer := time.AfterFunc(b.within, func() { cancel(errSilent{}) })
		defer timer.Stop()
	}
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		if silent := (errSilent{}); errors.Is(context.Cause(ctx), silent) {
			return nil, silent
		}
		return nil, err
	}
	response.Body = &body{response.Body, end}
	return response, nil
}

// body ends what holds a request when its answer has been read.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
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
