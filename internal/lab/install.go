package lab

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
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
		chart.Kubernetes = l.versions.kubernetes
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

func awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	return retry(ctx, func() (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, errors.New("the service account default/default does not exist yet")
		}
		return false, err
	})
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

// parseManifests splits YAML documents into objects, custom resource definitions
// first. An object that could not be applied by name is an error.
func parseManifests(manifests [][]byte) ([]*unstructured.Unstructured, error) {
	var definitions, others []*unstructured.Unstructured
	for i, manifest := range manifests {
		docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("manifest %d: %w", i, err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &object.Object); err != nil {
				return nil, fmt.Errorf("manifest %d: %w", i, err)
			}
			if len(object.Object) == 0 {
				continue // nothing but comments
			}
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				return nil, fmt.Errorf("manifest %d: an object needs apiVersion, kind and metadata.name, and has %q, %q and %q",
					i, object.GetAPIVersion(), object.GetKind(), object.GetName())
			}
			if isDefinition(object) {
				definitions = append(definitions, object)
			} else {
				others = append(others, object)
			}
		}
	}
	return append(definitions, others...), nil
}

func isDefinition(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// applier applies objects server side, whatever their kind.
type applier struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// apply applies the objects in order. Kinds that are defined by an earlier object
// are waited for.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		err := retry(ctx, func() (bool, error) {
			err := a.applyOne(ctx, o)
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				// The kind is not served yet, or was not when discovery was
				// cached; or the namespace is not there yet.
				a.mapper.Reset()
				return true, err
			}
			return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err), err
		})
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// resource is the client for an object of a manifest.
func (a *applier) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

func (a *applier) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := a.resource(o)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// installTimeout bounds each thing that the installation waits for.
const installTimeout = 30 * time.Second

// retry calls try until it succeeds or fails for good, and at most for
// installTimeout. It returns the last error.
func retry(ctx context.Context, try func() (again bool, err error)) error {
	deadline := time.Now().Add(installTimeout)
	for {
		again, err := try()
		if err == nil || !again || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askOften):
		}
	}
}
