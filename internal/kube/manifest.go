package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsjson "sigs.k8s.io/json"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

// Manifest is one object of a file.
type Manifest struct {
	// Source says where the object is: the file and the document's number.
	Source string
	Object client.Object
	// Generated says that the name was made up from metadata.generateName. It is
	// unique among the documents of one stream.
	Generated bool
	// Ignored names what the object holds and its kind does not know: mistyped
	// fields, or those of a newer Kubernetes.
	Ignored []string
	// Text is the object as it was read, in JSON, for objects of the groups of nap's
	// custom resource definitions; nil for others. Planning may
	// change Object, never Text.
	Text []byte
}

// Unread is the error of an object that could not be read as what it says it is.
type Unread struct {
	// Source is as in Manifest, Kind what the object says of itself, Name may be empty.
	Source string
	Kind   schema.GroupVersionKind
	Name   string
	// Text is as in Manifest: what else is wrong with the object can be told from it.
	Text []byte
	err  error
}

// Error says where the object is, which it is and why it could not be read.
func (u *Unread) Error() string { return fmt.Sprintf("%s: %v", u.Source, u.err) }

// Unwrap returns why.
func (u *Unread) Unwrap() error { return u.err }

// Name is "Kind namespace/name", or "Kind name" for objects of the cluster.
func (m *Manifest) Name() string { return objectName(m.Object) }

func objectName(o client.Object) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// kinds are the kinds that planning reads, by apiVersion and kind, with what makes an
// empty object of each.
func kinds() map[string]func() client.Object {
	return map[string]func() client.Object{
		"v1 Pod":                             empty[corev1.Pod],
		"v1 Node":                            empty[corev1.Node],
		"v1 Namespace":                       empty[corev1.Namespace],
		"v1 LimitRange":                      empty[corev1.LimitRange],
		"v1 ResourceQuota":                   empty[corev1.ResourceQuota],
		"v1 Service":                         empty[corev1.Service],
		"v1 ReplicationController":           empty[corev1.ReplicationController],
		"v1 PersistentVolume":                empty[corev1.PersistentVolume],
		"v1 PersistentVolumeClaim":           empty[corev1.PersistentVolumeClaim],
		"apps/v1 Deployment":                 empty[appsv1.Deployment],
		"apps/v1 ReplicaSet":                 empty[appsv1.ReplicaSet],
		"apps/v1 StatefulSet":                empty[appsv1.StatefulSet],
		"apps/v1 DaemonSet":                  empty[appsv1.DaemonSet],
		"batch/v1 Job":                       empty[batchv1.Job],
		"batch/v1 CronJob":                   empty[batchv1.CronJob],
		"storage.k8s.io/v1 StorageClass":     empty[storagev1.StorageClass],
		"storage.k8s.io/v1 CSINode":          empty[storagev1.CSINode],
		"storage.k8s.io/v1 VolumeAttachment": empty[storagev1.VolumeAttachment],
		"node.k8s.io/v1 RuntimeClass":        empty[nodev1.RuntimeClass],
		"policy/v1 PodDisruptionBudget":      empty[policyv1.PodDisruptionBudget],
		"resource.k8s.io/v1 DeviceClass":     empty[resourcev1.DeviceClass],
		"resource.k8s.io/v1 ResourceClaim":   empty[resourcev1.ResourceClaim],
		"resource.k8s.io/v1 ResourceSlice":   empty[resourcev1.ResourceSlice],
		"scheduling.k8s.io/v1 PriorityClass": empty[schedulingv1.PriorityClass],
		"karpenter.sh/v1 NodePool":           empty[v1.NodePool],
		"karpenter.sh/v1 NodeClaim":          empty[v1.NodeClaim],
		"karpenter.sh/v1alpha1 NodeOverlay":  empty[v1alpha1.NodeOverlay],
		"v1 PodTemplate":                     empty[corev1.PodTemplate],

		"resource.k8s.io/v1 ResourceClaimTemplate":    empty[resourcev1.ResourceClaimTemplate],
		"autoscaling.x-k8s.io/v1beta1 CapacityBuffer": empty[autoscalingv1beta1.CapacityBuffer],
	}
}

func empty[T any, P interface {
	*T
	client.Object
}]() client.Object {
	return P(new(T))
}

// typed returns an empty object for the kinds that planning reads; all others
// stay unstructured.
func (d *decoder) typed(apiVersion, kind string) client.Object {
	if make := d.kinds[apiVersion+" "+kind]; make != nil {
		return make()
	}
	return &unstructured.Unstructured{}
}

// decoder decodes the documents of one stream, several at the same time.
type decoder struct {
	// generated counts the names made of each metadata.generateName. One goroutine uses it.
	generated map[string]int
	// kinds is what the function of this name returns.
	kinds map[string]func() client.Object
	// right has the kinds, as metav1.TypeMeta, that have been found right.
	right sync.Map
}

// head is what all objects have in common.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// decode reads a document or an item of a list. Items of a list of one kind, such
// as PodList, may leave out what they are, which is then as given. Objects whose names the API
// server generates have none yet.
func (d *decoder) decode(raw []byte, where string, listed metav1.TypeMeta) ([]Manifest, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" || string(text) == "{}" {
		return nil, nil
	}
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("%s: is not a Kubernetes object: %w", where, plainer(raw, err))
	}
	if h.Kind == "" && h.APIVersion == "" {
		h.TypeMeta = listed
	}
	if err := d.check(&h); err != nil {
		return nil, h.unread(where, raw, err)
	}
	if h.Kind == "List" || h.Items != nil {
		return d.decodeItems(&h, where)
	}
	o := d.typed(h.APIVersion, h.Kind)
	unknown, err := sigsjson.UnmarshalStrict(raw, o)
	if err != nil {
		return nil, h.unread(where, raw, h.named(plainer(raw, err)))
	}
	if err := saturatedAmount(raw, h.GroupVersionKind().Group); err != nil {
		return nil, h.unread(where, raw, h.named(err))
	}
	o.GetObjectKind().SetGroupVersionKind(h.GroupVersionKind())
	if pool, is := o.(*v1.NodePool); is {
		fillPool(pool, raw)
	}
	if namespaced(o) && o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	generated := o.GetName() == "" && o.GetGenerateName() != ""
	if o.GetName() == "" && !generated {
		return nil, h.unread(where, raw, fmt.Errorf("%s: metadata.name is missing", h.Kind))
	}
	m := Manifest{Source: where, Object: o, Generated: generated, Text: h.text(raw)}
	for _, e := range unknown {
		m.Ignored = append(m.Ignored, e.Error())
	}
	return []Manifest{m}, nil
}

// text is what [Manifest.Text] is of an object.
func (h *head) text(raw []byte) []byte {
	if !isDefined(h.GroupVersionKind().Group) {
		return nil
	}
	return slices.Clone(raw)
}

// named is an error that says of which object it is.
func (h *head) named(err error) error {
	return fmt.Errorf("%s %s: %w", h.Kind, qualified(h.Metadata.Namespace, h.Metadata.Name), err)
}

func (h *head) unread(where string, raw []byte, err error) error {
	return &Unread{Source: where, Kind: h.GroupVersionKind(), Name: h.Metadata.Name, Text: h.text(raw), err: err}
}

func (d *decoder) decodeItems(list *head, where string) ([]Manifest, error) {
	var out []Manifest
	var problems []error
	var listed metav1.TypeMeta
	if kind := strings.TrimSuffix(list.Kind, "List"); kind != "" {
		listed = metav1.TypeMeta{APIVersion: list.APIVersion, Kind: kind}
	}
	for i, item := range list.Items {
		found, err := d.decode(item, fmt.Sprintf("%s, item %d", where, i+1), listed)
		if err != nil {
			problems = append(problems, err)
		}
		out = append(out, found...)
	}
	return out, errors.Join(problems...)
}

// name makes the names that objects leave to the API server, but the same each time.
func (d *decoder) name(decoded []Manifest) {
	for i := range decoded {
		if o := decoded[i].Object; decoded[i].Generated {
			key := objectName(o) + o.GetGenerateName()
			d.generated[key]++
			o.SetName(fmt.Sprint(o.GetGenerateName(), d.generated[key]))
		}
	}
}

// check says what keeps a document from being an object that can be read. It looks once at
// kinds that are right: most documents of a stream have one of few.
func (d *decoder) check(h *head) error {
	if _, known := d.right.Load(h.TypeMeta); known {
		return nil
	}
	if err := h.check(d.kinds); err != nil {
		return err
	}
	d.right.Store(h.TypeMeta, nil)
	return nil
}

// convertHint is the command that writes objects of older versions as today's, for the
// groups of which it does.
func convertHint(group string) string {
	if group == "karpenter.sh" {
		return "; nap convert -f FILE writes it so"
	}
	return ""
}

// servedAs is the version under which workloads are served that a document has in one which
// Kubernetes has removed; empty for others.
func servedAs(apiVersion, kind string) string {
	switch apiVersion {
	case "extensions/v1beta1", "apps/v1beta1", "apps/v1beta2":
		switch kind {
		case "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet":
			return "apps/v1"
		}
	}
	return ""
}

// check says what keeps a document from being an object that can be read.
func (h *head) check(kinds map[string]func() client.Object) error {
	name := qualified(h.Metadata.Namespace, h.Metadata.Name)
	switch {
	case h.Kind == "" && h.APIVersion == "":
		return errors.New("has no apiVersion and kind, every document must be a Kubernetes object")
	case h.APIVersion == "":
		return fmt.Errorf("%s: apiVersion is missing", strings.TrimSpace(h.Kind+" "+name))
	case h.Kind == "":
		return fmt.Errorf("kind is missing, next to apiVersion %s", h.APIVersion)
	}
	group := h.GroupVersionKind().Group
	if now := servedAs(h.APIVersion, h.Kind); now != "" {
		return fmt.Errorf("%s: apiVersion: got %q, which no API server serves any more, use: %s",
			strings.TrimSpace(h.Kind+" "+name), h.APIVersion, now)
	}
	for _, known := range slices.Sorted(maps.Keys(kinds)) {
		version, kind, _ := strings.Cut(known, " ")
		if g, _, found := strings.Cut(version, "/"); found && g != group || !found && group != "" {
			continue
		}
		switch {
		case kind == h.Kind && version != h.APIVersion:
			return fmt.Errorf("%s: apiVersion: got %q, allowed: %s%s", strings.TrimSpace(h.Kind+" "+name), h.APIVersion, version,
				convertHint(group))
		case kind != h.Kind && (strings.EqualFold(h.Kind, kind) || strings.EqualFold(h.Kind, kind+"s")):
			return fmt.Errorf("%s: kind: got %q, which %s does not have, use: %s", name, h.Kind, version, kind)
		}
	}
	if err := h.mistyped(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// fillPool writes the API server's default into a NodePool that says nothing of
// consolidateAfter, which the decoded object cannot tell from Never.
func fillPool(pool *v1.NodePool, raw []byte) {
	var given struct {
		Spec struct {
			Disruption struct {
				ConsolidateAfter *json.RawMessage `json:"consolidateAfter"`
			} `json:"disruption"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &given); err == nil && given.Spec.Disruption.ConsolidateAfter == nil {
		pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	}
}

// plainer says what json's own words say about Go, about the document: the
// field, the value and what is allowed.
func plainer(raw []byte, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := strings.TrimPrefix(wrong.Field, "TypeMeta.") // is Go's alone: documents have its fields at the top
		return mistyped(field, wrong.Value, wrong.Type.Kind())
	}
	var document any
	if json.Unmarshal(raw, &document) == nil {
		if where, value := findQuantity(document, "", unreadableQuantity); where != "" {
			return fmt.Errorf("%s: got %q, must be a quantity such as 4, 500m or 16Gi", where, value)
		}
		if where, value := findDuration(specOf(document, "karpenter."), "spec"); where != "" {
			return fmt.Errorf("%s: got %q, must be a duration such as 90s, 15m or 720h, of at most %d h", where, value,
				int64(time.Duration(math.MaxInt64).Hours()))
		}
	}
	return err
}

// specOf is the specification of a document of a group that begins so; nil of others.
func specOf(document any, group string) any {
	object, _ := document.(map[string]any)
	if version, _ := object["apiVersion"].(string); !strings.HasPrefix(version, group) {
		return nil
	}
	return object["spec"]
}

// findDuration finds the first duration of a NodePool or NodeClaim that is none; the error of
// the decoder does not say where it is.
func findDuration(v any, path string) (where, value string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if where, value = findDuration(item, fmt.Sprintf("%s[%d]", path, i)); where != "" {
				return where, value
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			field := path + "." + k
			switch k {
			case "labels", "annotations": // have keys of the user's
				continue
			case "expireAfter", "consolidateAfter", "terminationGracePeriod", "duration":
				text, is := v[k].(string)
				if _, err := time.ParseDuration(text); is && err != nil && text != v1.Never {
					return field, text
				}
			}
			if where, value = findDuration(v[k], field); where != "" {
				return where, value
			}
		}
	}
	return "", ""
}

func mistyped(field, got string, want reflect.Kind) error {
	got = withArticle(got)
	switch {
	case field == "":
		return fmt.Errorf("got %s, must be a mapping", got)
	case want == reflect.Struct || want == reflect.Map:
		return fmt.Errorf("%s: got %s, must be a mapping", field, got)
	case want == reflect.Slice:
		return fmt.Errorf("%s: got %s, must be a list", field, got)
	}
	return fmt.Errorf("%s: got %s, must be %s", field, got, inWords(want))
}

// withArticle is what json calls a value, as a noun in a sentence.
func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// inWords says what values of a kind look like in a document.
func inWords(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "a string: put it in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return fmt.Sprintf("a whole number of at most %d", math.MaxInt32)
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default: // the other kinds are called by their name
	}
	return "a " + kind.String()
}

// unreadableQuantity reports whether a text is no quantity.
func unreadableQuantity(text string) bool {
	_, err := resource.ParseQuantity(text)
	return err != nil
}

// saturated reports whether a text is a quantity beyond the largest that Kubernetes keeps: read
// as an object, it is not what was written any more.
func saturated(text string) bool {
	q, err := resource.ParseQuantity(text)
	return err == nil && q.CmpInt64(math.MaxInt64) == 0
}

// saturatedAmount refuses an amount that cannot be kept, as it was written. NodePools, whose
// limits may be as large as one likes, are not looked at.
func saturatedAmount(raw []byte, group string) error {
	if strings.HasPrefix(group, "karpenter.") || !bytes.Contains(raw, []byte(`Ei"`)) {
		return nil
	}
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		return err
	}
	if where, value := findQuantity(document, "", saturated); where != "" {
		return fmt.Errorf("%s: got %s, which is more than any machine will ever have", where, value)
	}
	return nil
}

// findQuantity finds the first quantity of which something holds; the error of the
// decoder does not say where it is.
func findQuantity(v any, path string, holds func(text string) bool) (where, value string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if where, value = findQuantity(item, fmt.Sprintf("%s[%d]", path, i), holds); where != "" {
				return where, value
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			field := strings.TrimPrefix(path+"."+k, ".")
			switch k {
			case "requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources", "hard", "used":
				if list, ok := v[k].(map[string]any); ok {
					for _, name := range slices.Sorted(maps.Keys(list)) {
						text := fmt.Sprint(list[name])
						if holds(text) {
							return fmt.Sprintf("%s[%s]", field, name), text
						}
					}
				}
			}
			if where, value = findQuantity(v[k], field, holds); where != "" {
				return where, value
			}
		}
	}
	return "", ""
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// namespaced reports whether objects of this kind, of those that planning reads, are in a
// namespace.
func namespaced(o client.Object) bool {
	switch o.(type) {
	case *corev1.Pod, *corev1.Service, *corev1.PodTemplate, *autoscalingv1beta1.CapacityBuffer, *corev1.ReplicationController,
		*corev1.PersistentVolumeClaim, *corev1.LimitRange, *corev1.ResourceQuota, *resourcev1.ResourceClaim, *resourcev1.ResourceClaimTemplate,
		*appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet,
		*appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob, *policyv1.PodDisruptionBudget:
		return true
	}
	return false
}
