package helmrelease

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// secretType is that of the Secrets in which Helm keeps releases since version 3.
const secretType = "helm.sh/release.v1"

// dataKey is the key of the release in its Secret.
const dataKey = "release"

// store reads and writes the revisions of releases of one namespace.
type store struct {
	kube      kubernetes.Interface
	namespace string
	now       func() time.Time
}

// secretName is where Helm looks for a revision.
func secretName(r *releasev1.Release) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", r.Name, r.Version)
}

// history are the revisions of a release, in no order; of all namespaces where the store has
// none.
func (s *store) history(ctx context.Context, name string) ([]*releasev1.Release, error) {
	list, err := s.kube.CoreV1().Secrets(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	if err != nil {
		return nil, fmt.Errorf("read the releases of Helm in %s: %w", cmp.Or(s.namespace, "all namespaces"), err)
	}
	var out []*releasev1.Release
	for i := range list.Items {
		r, err := decode(list.Items[i].Data[dataKey])
		if err != nil {
			return nil, fmt.Errorf("secret %s in namespace %s is no release of Helm: %w: look at it with helm history %s, or remove it",
				list.Items[i].Name, list.Items[i].Namespace, err, name)
		}
		out = append(out, r)
	}
	return out, nil
}

// put writes a revision down, as it is now.
func (s *store) put(ctx context.Context, r *releasev1.Release) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	secrets, stamp := s.kube.CoreV1().Secrets(s.namespace), strconv.FormatInt(s.now().Unix(), 10)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName(r), Namespace: s.namespace, Labels: map[string]string{
			"name": r.Name, "owner": "helm", "status": string(r.Info.Status), "version": strconv.Itoa(r.Version), "createdAt": stamp,
		}},
		Type: secretType, Data: map[string][]byte{dataKey: text},
	}
	_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		old, readErr := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
		if readErr != nil {
			return fmt.Errorf("read revision %d of release %s: %w", r.Version, r.Name, readErr)
		}
		secret.ResourceVersion = old.ResourceVersion
		secret.Labels["createdAt"], secret.Labels["modifiedAt"] = old.Labels["createdAt"], stamp
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write revision %d of release %s: %w", r.Version, r.Name, err)
	}
	return nil
}

// remove removes a revision.
func (s *store) remove(ctx context.Context, r *releasev1.Release) error {
	err := s.kube.CoreV1().Secrets(s.namespace).Delete(ctx, secretName(r), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove revision %d of release %s: %w", r.Version, r.Name, err)
	}
	return nil
}

// encode writes a release as Helm's storage driver does: JSON, compressed, in base64.
func encode(r *releasev1.Release) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write release %s: %w", r.Name, err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("write release %s: %w", r.Name, err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}

func decode(data []byte) (*releasev1.Release, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	release := &releasev1.Release{}
	if err := json.Unmarshal(text, release); err != nil {
		return nil, err
	}
	if release.Info == nil {
		release.Info = &releasev1.Info{Status: common.StatusUnknown}
	}
	return release, nil
}
