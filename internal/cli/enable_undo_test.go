package cli

import (
	"strings"
	"testing"
)

// keptClass is an AKSNodeClass with nap's finalizer and another one.
const keptClass = `
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default, resourceVersion: "1", finalizers: [karpenter.azure.com/termination, example.org/other]}
---
`

// endingPod is a pod of nap's Deployment.
const endingPod = `
apiVersion: v1
kind: Pod
metadata: {name: nap-1, namespace: nap-system, labels: {app.kubernetes.io/instance: nap}}
---
`

const boughtClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-1}
---
`

// TestUndoTakesTheFinalizerOffNodeClasses: once nap's pods have ended, and not while there are
// machines; the finalizers of others stay.
func TestUndoTakesTheFinalizerOffNodeClasses(t *testing.T) {
	for name, tt := range map[string]struct {
		objects, says string
		args          []string
		code          int
		patched       bool
	}{
		"no pods":      {keptClass, "finalizer of AKSNodeClass default: removed", nil, 0, true},
		"a dry run":    {keptClass, "would remove the finalizer of AKSNodeClass default: kubectl patch aksnodeclass default --type merge --patch '{\"metadata\":{\"finalizers\":[\"example.org/other\"]}}'", []string{"--dry-run"}, 0, false},
		"a pod":        {keptClass + endingPod, "pod nap-1 in namespace nap-system has not ended after 0s; identity and roles stay", []string{"--timeout=0s"}, exitNotReady, false},
		"a machine":    {keptClass + boughtClaim, "nap has 1 machines, which would be left behind", nil, exitFirst, false},
		"no classes":   {endingPod, "identity nap-nap: removed", nil, 0, false},
		"no finalizer": {strings.Replace(keptClass, "karpenter.azure.com/termination, ", "", 1) + endingPod, "identity nap-nap: removed", nil, 0, false},
	} {
		c := ready(t)
		c.objects = tt.objects
		c.start()
		c.trust(releaseNamespace)
		text, code := c.enable(append(tt.args, "--undo")...)
		if code != tt.code || !strings.Contains(text, tt.says) {
			t.Errorf("%s: exit code %d, it does not say %q:\n%s", name, code, tt.says, text)
		}
		const freed = `"finalizers":["example.org/other"]`
		if patches := strings.Join(c.api.Patches(), "\n"); strings.Contains(patches, freed) != tt.patched || (patches == "") == tt.patched {
			t.Errorf("%s: patches %s", name, patches)
		}
		if gone := c.subject() == ""; gone != (tt.code == 0 && tt.args == nil) {
			t.Errorf("%s: the identity is gone: %v", name, gone)
		}
	}
}

// TestEnableRefusesDefinitionsBeingDeleted: they would vanish under nap, and nothing is made.
func TestEnableRefusesDefinitionsBeingDeleted(t *testing.T) {
	c := ready(t)
	c.objects = strings.Replace(definitionOf(releaseNamespace), "metadata:", "metadata:\n  deletionTimestamp: '2026-11-15T12:00:00Z'", 1)
	text, code := c.enable(testImage)
	if code != exitFirst || c.writes() > 0 ||
		!strings.Contains(text, "the definition nodepools.karpenter.sh is being deleted since 2026-11-15T12:00:00Z, and would vanish under nap.") {
		t.Errorf("exit code %d, %d writes in Azure:\n%s", code, c.writes(), text)
	}
}
