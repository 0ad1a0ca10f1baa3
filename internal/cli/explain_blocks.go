package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/unavailablestore"
	"github.com/nodeautoprovision/nap/internal/model"
)

// refusals are what the controller of a live cluster remembers of Azure's
// refusals. The note says why nothing is known of them, where that is so.
func (f *inputFlags) refusals(ctx context.Context, now func() time.Time) (refused *unavailable.Offerings, note string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return readRefusals(ctx, client, now)
}

func readRefusals(ctx context.Context, client kubernetes.Interface,
	now func() time.Time) (refused *unavailable.Offerings, note string, err error) {
	list, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: unavailablestore.Label})
	switch {
	case apierrors.IsForbidden(err):
		return nil, "what Azure has refused lately is not known: you may not list ConfigMaps of label " + unavailablestore.Label, nil
	case err != nil:
		return nil, "", fmt.Errorf("list the ConfigMaps of label %s: %w", unavailablestore.Label, err)
	}
	refused = unavailable.New(now)
	for i := range list.Items {
		m := &list.Items[i]
		if err := refused.Unmarshal([]byte(m.Data[unavailablestore.Key])); err != nil {
			return nil, fmt.Sprintf("what Azure has refused lately is not known: ConfigMap %s/%s: %v", m.Namespace, m.Name, err), nil
		}
	}
	return refused, "", nil
}

// refuse marks the offerings of a size that Azure has refused.
func refuse(t *model.InstanceType, refused *unavailable.Offerings) {
	sku := instancetype.SKU{Name: t.Name, VCPUs: t.Capacity.Get(model.CPU) / 1000}
	for i := range t.Offerings {
		for _, q := range t.Offerings[i].Quotas {
			if q.Quota != instancetype.QuotaRegional && q.Quota != instancetype.QuotaSpot {
				sku.Family = q.Quota
			}
		}
	}
	t.Offerings = slices.Clone(t.Offerings)
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if why := refused.Unavailable(&sku, o.Zone, o.CapacityType); why != "" {
			o.Available, o.Unavailable = false, why
		}
	}
}
