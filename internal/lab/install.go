package lab

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

//go:embed manifests/bootstrap.yaml
var bootstrapManifest []byte

// fieldManager owns the fields that the lab applies.
const fieldManager = "nap-lab"

// install applies the lab's own objects and the configured manifests, and waits
// until pods can be created: the controller manager has to make the default
// service account first.
func (l *Lab) install(ctx context.Context) error {
	cfg, err := l.env.AdminConfig()
	if err != nil {
		return err
	}
	secret, err := bootstrapSecret(l.env.BootstrapToken)
	if err != nil {
		return err
	}
	manifests := [][]byte{bootstrapManifest, secret}
	for _, chart := range l.cfg.Charts {
		chart.Kubernetes = l.emulation.served()
		rendered, err := chart.Render(ctx, l.cfg.Binary)
		if err != nil {
			return err
		}
		manifests = append(manifests, rendered)
	}
	if err := Apply(ctx, cfg, append(manifests, l.cfg.Manifests...)...); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return awaitServiceAccount(ctx, client)
}

// installTimeout bounds the wait for the default service account.
const installTimeout = 30 * time.Second

func awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, askOften, installTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New("the service account default/default does not exist after " + installTimeout.String())
	}
	return err
}

// bootstrapSecret is the Secret that makes the API server accept the token.
func bootstrapSecret(token string) ([]byte, error) {
	id, secret, ok := strings.Cut(token, ".")
	if !ok {
		return nil, errors.New("the bootstrap token in pki/ has no dot; delete the file and start again")
	}
	return yaml.Marshal(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id":                       id,
			"token-secret":                   secret,
			"usage-bootstrap-authentication": "true",
			"description":                    "lets the lab's machines become nodes",
		},
	})
}
