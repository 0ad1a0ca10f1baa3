package model

import "testing"

func TestAlikeFindsMisspelledWords(t *testing.T) {
	known := []string{"Deployment", "DaemonSet", "Pod", "Node", "karpenter.azure.com/sku-family"}
	for word, want := range map[string]string{
		"Deploymnet": "Deployment", "deploymentt": "Deployment", "Daemonset": "DaemonSet", "pod": "Pod", "Nod": "Pod", "Pods": "Pod",
		"Prometheus": "", "karpenter.azure.com/sku-famliy": "karpenter.azure.com/sku-family", "Podd": "Pod", "": "",
	} {
		if got := Alike(word, known); got != want {
			t.Errorf("Alike(%q) = %q, want %q", word, got, want)
		}
	}
}
