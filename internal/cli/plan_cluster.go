package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// readCluster lists a live cluster. Kinds that the cluster does not have are left out with
// a note, and so are, for a partial answer, those that may not be listed.
func (p *planInput) readCluster(ctx context.Context, cluster *command.Cluster, partial bool) error {
	config, err := cluster.Config(ctx)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	objects, missing, forbidden, err := kube.ListCluster(ctx, config)
	if err != nil {
		return unreadable(cluster, config.Host, err)
	}
	if p.told, err = readSnapshot(ctx, config); err != nil {
		return err
	}
	if p.spread == nil && p.told.document != nil {
		if p.spread = kube.NewDefaultSpread(p.told.document.DefaultSpread); p.spread != nil {
			p.notes = append(p.notes, "pods without spread constraints have the controller's default ones (--scheduler-config)")
		}
	}
	if p.spread != nil {
		owners, none, refused, err := kube.ListForDefaultSpread(ctx, config)
		if err != nil {
			return unreadable(cluster, config.Host, err)
		}
		objects, missing, forbidden = append(objects, owners...), append(missing, none...), append(forbidden, refused...)
	}
	toCome, none, refused, err := kube.ListForPodsToCome(ctx, config)
	if err != nil {
		return unreadable(cluster, config.Host, err)
	}
	objects, missing, forbidden = append(objects, toCome...), append(missing, none...), append(forbidden, refused...)
	for _, kind := range missing {
		p.notes = append(p.notes, "the cluster has no "+kind)
	}
	if err := p.unlisted(config.Host, forbidden, partial); err != nil {
		return err
	}
	mirror := kube.NewMirror(p.store, kube.Settings{Spread: p.spread, IgnoreClaims: p.claimsIgnored(), Manages: p.told.manages()})
	for _, o := range objects {
		if overlay, is := o.(*v1alpha1.NodeOverlay); is {
			p.overlays.note(overlay, true)
			continue
		}
		p.note(o)
		mirror.Apply(o)
	}
	return nil
}

// unlisted notes the kinds that may not be listed, or refuses to plan without them.
func (p *planInput) unlisted(host string, forbidden []string, partial bool) error {
	for _, kind := range forbidden {
		if !partial && !slices.Contains(harmless, kind) || slices.Contains(essential, kind) {
			return fmt.Errorf("read the cluster at %s: these credentials may not list %s: ask for the right "+
				"(kubectl auth can-i list %s -A; the ClusterRole nap-reader has it), or try it with --as",
				host, strings.Join(forbidden, ", "), strings.ToLower(kind))
		}
		p.notes = append(p.notes, "partial answer: these credentials may not list "+kind+", so none is taken into account")
	}
	return nil
}

// unreadable is why a cluster cannot be read, with what to do.
func unreadable(cluster *command.Cluster, host string, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("read the cluster at %s: %w: its credentials are not accepted, sign in again "+
			"(az aks get-credentials, kubelogin) or choose another --context", host, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("read the cluster at %s: %w: ask for the right, or try it with --as", host, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted: the cluster at %s (context %s) had not answered yet", host, cluster.Name())
	case utilnet.IsTimeout(err):
		return fmt.Errorf("read the cluster at %s (context %s): it did not answer a request within %s (--request-timeout): "+
			"see that it runs and can be reached, or choose another --context", host, cluster.Name(), cluster.RequestTimeout)
	case utilnet.IsConnectionRefused(err):
		return fmt.Errorf("read the cluster at %s (context %s): %w: see that it runs and can be reached, or choose another --context",
			host, cluster.Name(), err)
	}
	return fmt.Errorf("read the cluster at %s (context %s): %w", host, cluster.Name(), err)
}
