package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// stored is a cluster of the objects of a text.
func stored(t *testing.T, text string) *fleet.Snapshot {
	t.Helper()
	found, err := Decode(strings.NewReader(text), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	store := fleet.NewStore()
	mirror := NewMirror(store, Settings{})
	for _, m := range found {
		mirror.Apply(m.Object)
	}
	return store.Snapshot()
}

func small(t *testing.T) fixedCatalog {
	t.Helper()
	file, err := ReadCatalog(strings.NewReader(smallCatalog))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := file.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	return fixedCatalog{catalog}
}

// hostDisks are a running and a pending pod, each with a volume of the same host.
const hostDisks = `
apiVersion: v1
kind: Node
metadata: {name: a, labels: {kubernetes.io/hostname: a, topology.kubernetes.io/zone: z-1}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: runs}
spec:
  KIND
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a]}ZONE]}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: waits}
spec:
  KIND
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: runs, namespace: default}
spec: {volumeName: runs}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waits, namespace: default}
spec: {volumeName: waits}
status: {phase: Bound}
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: default}
spec:
  nodeName: a
  volumes: [{name: d, persistentVolumeClaim: {claimName: runs}}]
  containers: [{name: a, resources: {requests: {cpu: 1}}}]
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  volumes: [{name: d, persistentVolumeClaim: {claimName: waits}}]
  containers: [{name: a, resources: {requests: {cpu: 1}}}]
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`

// A volume of a host keeps no running pod on its node, and a pending pod waits for its
// host while that is there.
func TestHostVolumesTieNoRunningPod(t *testing.T) {
	const zone = ", {key: topology.kubernetes.io/zone, operator: In, values: [z-1]}"
	for name, c := range map[string]struct {
		kind, zone string
		// runs and waits say where the running and the pending pod may be.
		runs, waits string
	}{
		"local":           {"local: {path: /d}", "", "[]", "[kubernetes.io/hostname In [a]]"},
		"hostPath":        {"hostPath: {path: /d}", "", "[]", "[kubernetes.io/hostname In [a]]"},
		"local in a zone": {"local: {path: /d}", zone, "[topology.kubernetes.io/zone In [z-1]]", "[kubernetes.io/hostname In [a]]"},
		"CSI": {
			"csi: {driver: d.example.com, volumeHandle: x}", "", "[kubernetes.io/hostname In [a]]", "[kubernetes.io/hostname In [a]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := stored(t, strings.NewReplacer("KIND", c.kind, "ZONE", c.zone).Replace(hostDisks))
			in, err := snapshot.Disruption(t.Context(), small(t), fleet.DisruptionOptions{Options: fleet.Options{Now: time.Unix(1_700_000_000, 0)}})
			if err != nil {
				t.Fatal(err)
			}
			runs, waits := "no class", "no class"
			for i := range in.Disruption.Movable {
				runs = places(in.Disruption.Movable[i].VolumeAlternatives)
			}
			for i := range in.Problem.Classes {
				waits = places(in.Problem.Classes[i].VolumeAlternatives)
			}
			if runs != c.runs || waits != c.waits {
				t.Errorf("the running pod may be at %s, the pending one at %s; want %s and %s", runs, waits, c.runs, c.waits)
			}
		})
	}
}

// The status of an attachment changes several times and says nothing that counts.
func TestVolumeAttachmentsOfFilesAreRead(t *testing.T) {
	const attachment = "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, " +
		"spec: {attacher: disk.csi.azure.com, nodeName: node, source: {persistentVolumeName: v}}, status: {attached: STATE}}"
	store := fleet.NewStore()
	mirror := NewMirror(store, Settings{})
	start := store.Revision()
	for _, state := range []string{"false", "true"} {
		found, err := Decode(strings.NewReader(strings.ReplaceAll(attachment, "STATE", state)), "file")
		if err != nil {
			t.Fatal(err)
		}
		if !mirror.Apply(found[0].Object) || store.Revision() != start+1 {
			t.Errorf("attached %s: after %d changes, want 1", state, store.Revision()-start)
		}
	}
}

func TestClaimsKeepTheNodeThatTheSchedulerChose(t *testing.T) {
	found, err := Decode(strings.NewReader(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: default, annotations: {volume.kubernetes.io/selected-node: a}}
spec: {accessModes: [ReadWriteOnce]}
`), "file")
	if err != nil {
		t.Fatal(err)
	}
	if got := volumeClaim(found[0].Object.(*corev1.PersistentVolumeClaim)).Node; got != "a" {
		t.Errorf("the volume is made for node %q, want a", got)
	}
}

const twoDefaults = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: a, creationTimestamp: "AGE-A", annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: disk.csi.azure.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z-1]}]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: b, creationTimestamp: "AGE-B", annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: disk.csi.azure.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z-2]}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: default}
spec: {accessModes: [ReadWriteOnce]}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  volumes: [{name: d, persistentVolumeClaim: {claimName: c}}]
  containers: [{name: a, resources: {requests: {cpu: 1}}}]
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`

func TestNewestDefaultStorageClassCounts(t *testing.T) {
	const older, newer = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
	for name, c := range map[string]struct{ a, b, want string }{
		"first newer":  {newer, older, "[topology.kubernetes.io/zone In [z-1]]"},
		"second newer": {older, newer, "[topology.kubernetes.io/zone In [z-2]]"},
		"same age":     {older, older, "[topology.kubernetes.io/zone In [z-1]]"},
	} {
		snapshot := stored(t, strings.NewReplacer("AGE-A", c.a, "AGE-B", c.b).Replace(twoDefaults))
		in, err := snapshot.Problem(t.Context(), small(t), fleet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := places(in.Problem.Classes[0].VolumeAlternatives); got != c.want {
			t.Errorf("%s: the claim without a class may be at %s, want %s", name, got, c.want)
		}
	}
}

// A claim without a class does not get the default one, and is not told to lack it.
func TestClaimsWithoutAClassSayWhatTheyWaitFor(t *testing.T) {
	for spec, want := range map[string]string{
		`storageClassName: ""`: `volume claim "c" is unbound, and storageClassName: "" waits for a volume without a class that is made by hand`,
		"accessModes: []":      `volume claim "c" is unbound and names no storage class, and there is no default one`,
	} {
		text := strings.NewReplacer("AGE-A", "2026-01-01T00:00:00Z", "AGE-B", "2026-01-01T00:00:00Z", "accessModes: [ReadWriteOnce]", spec).Replace(twoDefaults)
		if strings.HasPrefix(spec, "access") {
			text = strings.ReplaceAll(text, `is-default-class: "true"`, `is-default-class: "false"`)
		}
		in, err := stored(t, text).Problem(t.Context(), small(t), fleet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Rejected) != 1 || in.Rejected[0].Message != want {
			t.Errorf("%s: got %v, want %q", spec, in.Rejected, want)
		}
	}
}

// places are alternatives as text.
func places(alternatives []model.Requirements) string {
	var out []string
	for _, a := range alternatives {
		out = append(out, a.String())
	}
	return "[" + strings.Join(out, " or ") + "]"
}

// Volumes that were made by hand often say their zone in a label alone.
func TestVolumesAreInThePlacesOfTheirLabels(t *testing.T) {
	const affinity = "spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}, " +
		"{matchExpressions: [{key: c, operator: Exists}]}]}}}"
	zones := model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z-1", "z-2"}}
	region := model.Requirement{Key: "topology.kubernetes.io/region", Operator: model.In, Values: []string{"east"}}
	a := model.Requirement{Key: "a", Operator: model.In, Values: []string{"b"}}
	c := model.Requirement{Key: "c", Operator: model.Exists}
	for _, tc := range []struct {
		labels, spec string
		want         []model.Requirements
	}{
		{"topology.kubernetes.io/zone: z-2__z-1, topology.kubernetes.io/region: east", "", []model.Requirements{{zones, region}}},
		{"failure-domain.beta.kubernetes.io/zone: z-1__z-2, failure-domain.beta.kubernetes.io/region: east", "", []model.Requirements{{zones, region}}},
		{"topology.kubernetes.io/zone: z-1__z-2", affinity, []model.Requirements{{a, zones}, {c, zones}}},
		{"topology.kubernetes.io/zone: ''", affinity, []model.Requirements{{a}, {c}}},
		{"app: x", "", nil},
	} {
		found, err := Decode(strings.NewReader("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v, labels: {"+tc.labels+"}}, "+
			tc.spec+"}"), "file")
		if err != nil {
			t.Fatalf("%s: %v", tc.labels, err)
		}
		got := volume(found[0].Object.(*corev1.PersistentVolume)).Alternatives
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s, places (-want +got):\n%s", tc.labels, diff)
		}
	}
}
