package systemnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// identity is what a pod signs in to Azure as.
type identity struct{ client, tenant string }

// What Azure's workload identity reads and writes.
const (
	useIdentity      = "azure.workload.identity/use"
	identityClient   = "azure.workload.identity/client-id"
	identityTenant   = "azure.workload.identity/tenant-id"
	exchangeAudience = "api://AzureADTokenExchange"
	tokenSeconds     = 3600
)

// volume is the folder of a volume on this machine.
func (w *worker) volume(name string) string { return filepath.Join(w.dir, "volumes", name) }

func (w *worker) kubeconfig() string     { return filepath.Join(w.dir, "kubeconfig") }
func (w *worker) federatedToken() string { return filepath.Join(w.dir, "azure-identity-token") }

// refresh writes what the pod's volumes hold, as it is now; tokens are renewed long
// before they end.
func (w *worker) refresh(ctx context.Context, pod *corev1.Pod) error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("the folder of the pod: %w", err)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if err := w.mount(ctx, pod, v); err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	if err := w.signIn(ctx, pod); err != nil {
		return err
	}
	return w.writeKubeconfig(pod)
}

// mount writes a volume's files.
func (w *worker) mount(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) error {
	dir := w.volume(v.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	switch {
	case v.EmptyDir != nil:
		return nil
	case v.ConfigMap != nil:
		return w.project(ctx, pod, dir, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}})
	case v.Secret != nil:
		return w.project(ctx, pod, dir, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}})
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if err := w.project(ctx, pod, dir, source); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("the lab's system node has ConfigMaps, Secrets, empty folders and projections of these alone")
}

// project writes one source of a projected volume.
func (w *worker) project(ctx context.Context, pod *corev1.Pod, dir string, source corev1.VolumeProjection) error {
	core := w.pods.client.CoreV1()
	switch {
	case source.ServiceAccountToken != nil:
		s := source.ServiceAccountToken
		return w.writeToken(ctx, pod, filepath.Join(dir, s.Path), s.Audience, s.ExpirationSeconds)
	case source.ConfigMap != nil:
		m, err := core.ConfigMaps(pod.Namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && optional(source.ConfigMap.Optional) {
			return nil
		}
		if err != nil {
			return err
		}
		data := map[string][]byte{}
		for name, text := range m.Data {
			data[name] = []byte(text)
		}
		return writeFiles(dir, data, source.ConfigMap.Items)
	case source.Secret != nil:
		s, err := core.Secrets(pod.Namespace).Get(ctx, source.Secret.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && optional(source.Secret.Optional) {
			return nil
		}
		if err != nil {
			return err
		}
		return writeFiles(dir, s.Data, source.Secret.Items)
	case source.DownwardAPI != nil:
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef == nil {
				continue
			}
			text, err := (&container{worker: w}).field(pod, item.FieldRef.FieldPath)
			if err == nil {
				err = writeFile(filepath.Join(dir, item.Path), []byte(text))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("a source of files that the lab does not know")
}

// writeFiles writes all files of an object, or the items that are asked for.
func writeFiles(dir string, data map[string][]byte, items []corev1.KeyToPath) error {
	if len(items) == 0 {
		for name := range data {
			items = append(items, corev1.KeyToPath{Key: name, Path: name})
		}
	}
	for _, item := range items {
		text, ok := data[item.Key]
		if !ok {
			return fmt.Errorf("there is no key %q", item.Key)
		}
		if err := writeFile(filepath.Join(dir, item.Path), text); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file in one step, where its content has changed.
func writeFile(path string, text []byte) error {
	if have, err := os.ReadFile(path); err == nil && string(have) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// writeToken asks for a token of the pod's ServiceAccount, bound to the pod, unless the
// one that is there has most of its life before it.
func (w *worker) writeToken(ctx context.Context, pod *corev1.Pod, path, audience string, seconds *int64) error {
	life := int64(tokenSeconds)
	if seconds != nil {
		life = *seconds
	}
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) < time.Duration(life)*time.Second/2 {
		return nil
	}
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &life,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if audience != "" {
		ask.Spec.Audiences = []string{audience}
	}
	accounts := w.pods.client.CoreV1().ServiceAccounts(pod.Namespace)
	token, err := accounts.CreateToken(ctx, pod.Spec.ServiceAccountName, ask, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of ServiceAccount %s: %w", pod.Spec.ServiceAccountName, err)
	}
	return writeFile(path, []byte(token.Status.Token))
}

// signIn does for the pod what the webhook of workload identity does.
func (w *worker) signIn(ctx context.Context, pod *corev1.Pod) error {
	if pod.Labels[useIdentity] != "true" {
		return nil
	}
	account, err := w.pods.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("ServiceAccount %s: %w", pod.Spec.ServiceAccountName, err)
	}
	as := identity{
		client: account.Annotations[identityClient],
		tenant: cmp.Or(account.Annotations[identityTenant], w.pods.cfg.WorkloadIdentity.TenantID),
	}
	w.mu.Lock()
	w.as = as
	w.mu.Unlock()
	return w.writeToken(ctx, pod, w.federatedToken(), exchangeAudience, nil)
}

// writeKubeconfig writes the kubeconfig of a pod that has a ServiceAccount's token.
func (w *worker) writeKubeconfig(pod *corev1.Pod) error {
	folder := ""
	for _, c := range pod.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if m.MountPath == serviceAccountPath {
				folder = w.volume(m.Name)
			}
		}
	}
	if folder == "" {
		return nil
	}
	const name = "in-cluster"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: w.pods.env.Server, CertificateAuthority: filepath.Join(folder, "ca.crt")}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(folder, "token")}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: pod.Namespace}
	c.CurrentContext = name
	text, err := clientcmd.Write(*c)
	if err != nil {
		return err
	}
	return writeFile(w.kubeconfig(), text)
}
