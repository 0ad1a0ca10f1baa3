package metricsapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// ConfigMap is the name of the ConfigMap in which a namespace keeps its loads.
const ConfigMap = "lab-load"

// Load is what the running pods of a namespace that a selector chooses use together.
type Load struct {
	Selector labels.Selector
	// Usage is of cpu and memory; what is not named is zero.
	Usage corev1.ResourceList
}

// ParseLoad reads a load as stories write it: a selector, and cpu or memory or both.
//
//	app=web cpu=8 memory=4Gi
func ParseLoad(text string) (Load, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return Load{}, fmt.Errorf("load %q: say SELECTOR cpu=AMOUNT [memory=AMOUNT]", text)
	}
	selector, err := labels.Parse(words[0])
	if err != nil {
		return Load{}, fmt.Errorf("load %q: %w", text, err)
	}
	out := Load{Selector: selector, Usage: corev1.ResourceList{}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if name != string(corev1.ResourceCPU) && name != string(corev1.ResourceMemory) {
			return Load{}, fmt.Errorf("load %q: got %q, allowed: cpu=AMOUNT, memory=AMOUNT", text, word)
		}
		amount, err := resource.ParseQuantity(value)
		if err != nil || amount.Sign() < 0 {
			return Load{}, fmt.Errorf("load %q: %s: got %q, allowed: an amount such as 500m or 4Gi", text, name, value)
		}
		out.Usage[corev1.ResourceName(name)] = amount
	}
	return out, nil
}

// key is where a load is kept: keys of a ConfigMap have few letters.
func key(selector string) string { return hex.EncodeToString([]byte(selector)) }

// Set writes a load down; one with the same selector is replaced.
func Set(ctx context.Context, client kubernetes.Interface, namespace, text string) error {
	if _, err := ParseLoad(text); err != nil {
		return err
	}
	selector, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	maps := client.CoreV1().ConfigMaps(namespace)
	for {
		found, err := maps.Get(ctx, ConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: ConfigMap, Namespace: namespace}, Data: map[string]string{key(selector): text},
			}, metav1.CreateOptions{})
		} else if err == nil {
			if found.Data == nil {
				found.Data = map[string]string{}
			}
			found.Data[key(selector)] = text
			_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue // another program has written it: look again
		}
		if err != nil {
			return fmt.Errorf("write load %q: %w", text, err)
		}
		return nil
	}
}

// loads reads what a namespace's pods use.
func loads(ctx context.Context, client kubernetes.Interface, namespace string) ([]Load, error) {
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the loads of namespace %s: %w", namespace, err)
	}
	var out []Load
	for _, text := range found.Data {
		load, err := ParseLoad(text)
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, ConfigMap, err)
		}
		out = append(out, load)
	}
	return out, nil
}

// usage shares loads between the pods that work, and sums what each pod uses, by name. A
// pod that does not work uses nothing and is left out.
func usage(pods []corev1.Pod, loads []Load) map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for i := range pods {
		if works(&pods[i]) {
			out[pods[i].Name] = corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
		}
	}
	for _, load := range loads {
		var sharing []string
		for i := range pods {
			if _, counts := out[pods[i].Name]; counts && load.Selector.Matches(labels.Set(pods[i].Labels)) {
				sharing = append(sharing, pods[i].Name)
			}
		}
		for _, name := range sharing {
			for of, all := range load.Usage {
				sum := out[name][of]
				sum.Add(share(of, all, int64(len(sharing))))
				out[name][of] = sum
			}
		}
	}
	return out
}

// share is an equal part of an amount, in thousandths of a core or in bytes.
func share(of corev1.ResourceName, all resource.Quantity, parts int64) resource.Quantity {
	if of == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(all.MilliValue()/parts, resource.DecimalSI)
	}
	return *resource.NewQuantity(all.Value()/parts, resource.BinarySI)
}

// works reports whether a pod serves.
func works(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
