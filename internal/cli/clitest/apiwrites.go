package clitest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// selected are the objects whose labels a selector takes.
func selected(objects []any, selector string) []any {
	wanted, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(objects, func(o any) bool {
		u := unstructured.Unstructured{Object: o.(map[string]any)}
		return !wanted.Matches(labels.Set(u.GetLabels()))
	})
}

// body is the object that a request brings, as protobuf, JSON or YAML.
func body(r *http.Request) (*unstructured.Unstructured, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if r.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, err
		}
		o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		return o, err
	}
	text, err = yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return o, json.Unmarshal(text, &o.Object)
}

func (s *APIServer) create(version, kind, namespace string, r *http.Request) (int, any) {
	o, err := body(r)
	if err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	if len(s.find(version, kind, namespace, o.GetName())) > 0 {
		return status(http.StatusConflict, metav1.StatusReasonAlreadyExists, o.GetName()+" exists already")
	}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	s.objects = append(s.objects, o)
	return http.StatusCreated, o.Object
}

// apply merges what is applied into the object, which is made where it is missing.
func (s *APIServer) apply(version, kind, namespace, name string, r *http.Request) (int, any) {
	o, err := body(r)
	if err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	found := s.find(version, kind, namespace, name)
	if len(found) == 0 {
		s.objects = append(s.objects, o)
		return http.StatusCreated, o.Object
	}
	there := found[0].(map[string]any)
	merge(there, o.Object)
	return http.StatusOK, there
}

func (s *APIServer) replace(object any, r *http.Request) (int, any) {
	o, err := body(r)
	if err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	there := object.(map[string]any)
	clear(there)
	merge(there, o.Object)
	return http.StatusOK, there
}

// remove deletes an object; finalizers are not waited for.
func (s *APIServer) remove(object any) (int, any) {
	u := unstructured.Unstructured{Object: object.(map[string]any)}
	s.objects = slices.DeleteFunc(s.objects, func(o *unstructured.Unstructured) bool {
		return o.GetAPIVersion() == u.GetAPIVersion() && o.GetKind() == u.GetKind() && o.GetNamespace() == u.GetNamespace() &&
			o.GetName() == u.GetName()
	})
	return http.StatusOK, u.Object
}
