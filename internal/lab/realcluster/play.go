package realcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// Options are how a story is played.
type Options struct {
	// Patience multiplies every time that the story allows: machines of a real Azure
	// take minutes.
	Patience float64
	// Keep leaves what the story applied.
	Keep bool
}

// giveBackWithin bounds how long giving everything back may take.
const giveBackWithin = 20 * time.Minute

// Play plays a story on a cluster, and tells it to out. It refuses a cluster that has
// machines of nap's or Karpenter's, or objects that the story would overwrite. At the
// end it deletes what the story applied, and waits until all machines are gone.
func Play(ctx context.Context, cluster *rest.Config, azure *Azure, story *scenario.Scenario, o Options, out io.Writer) (err error) {
	if o.Patience < 1 {
		return fmt.Errorf("patience %v: it must be at least 1", o.Patience)
	}
	if err := unused(ctx, cluster, azure, story); err != nil {
		return err
	}
	if !o.Keep {
		defer func() {
			// An interrupted story is given back, too.
			err = errors.Join(err, giveBack(context.WithoutCancel(ctx), cluster, azure, story, out))
		}()
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go azure.watch(watching)
	config := rest.CopyConfig(cluster)
	config.QPS = -1
	return scenario.Run(ctx, story, scenario.Stage{
		Kubernetes: config,
		Apply:      func(ctx context.Context, manifest []byte) error { return lab.Apply(ctx, config, manifest) },
		Azure:      azure,
		Unbroken:   true,
		Patience:   o.Patience,
		Out:        out,
	})
}

// unused refuses a cluster in which a story would disturb something, or would not be
// alone.
func unused(ctx context.Context, cluster *rest.Config, azure *Azure, story *scenario.Scenario) error {
	claims, err := claims(ctx, cluster)
	if err != nil {
		return err
	}
	if claims > 0 {
		return fmt.Errorf("the cluster %s has %d NodeClaims; play scenarios on a cluster of their own", cluster.Host, claims)
	}
	machines, err := azure.Accepted(ctx)
	if err != nil {
		return err
	}
	if machines > 0 {
		return fmt.Errorf("cluster %s has %d machines of nap's in Azure; wait until they are gone", azure.config.ClusterName, machines)
	}
	there, err := lab.Existing(ctx, cluster, story.Manifests()...)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("the cluster %s has %s already, which the scenario would overwrite; delete them, or play it on another cluster",
			cluster.Host, strings.Join(there, ", "))
	}
	return nil
}

func claims(ctx context.Context, cluster *rest.Config) (int, error) {
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return 0, fmt.Errorf("connect to %s: %w", cluster.Host, err)
	}
	resource := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the NodeClaims of %s: %w; is nap installed there?", cluster.Host, err)
	}
	return len(list.Items), nil
}

// giveBack deletes what the story applied, what came last first, and waits until
// Azure has no machine of it.
func giveBack(ctx context.Context, cluster *rest.Config, azure *Azure, story *scenario.Scenario, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackWithin)
	defer cancel()
	fmt.Fprintln(out, "\n== Give everything back")
	if err := lab.Remove(ctx, cluster, story.Manifests()...); err != nil {
		return err
	}
	for {
		left, err := azure.Accepted(ctx)
		if err == nil && left == 0 {
			var n int
			if n, err = claims(ctx, cluster); err == nil && n == 0 {
				fmt.Fprintln(out, "          No machine and no NodeClaim is left.")
				return nil
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("after %s %d machines are left in Azure (%w); look at their NodeClaims",
				giveBackWithin, left, errors.Join(err, ctx.Err()))
		}
	}
}
