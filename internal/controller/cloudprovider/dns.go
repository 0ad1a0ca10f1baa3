package cloudprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// ClusterDNS finds the address of the cluster's DNS, which machines' kubelets must
// know: that of the Service kube-system/kube-dns, or where there is none or it may
// not be read, the one that AKS gives it by default.
func ClusterDNS(ctx context.Context, kube client.Reader) (string, error) {
	service := &corev1.Service{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}, service)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return config.DefaultDNSServiceIP, nil
	case err != nil:
		return "", fmt.Errorf("read Service kube-system/kube-dns, whose address nodes must know: %w; set DNS_SERVICE_IP to do without", err)
	case service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone:
		return config.DefaultDNSServiceIP, nil
	}
	return service.Spec.ClusterIP, nil
}
