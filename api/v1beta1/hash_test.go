package v1beta1

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func hashOf(t *testing.T, change func(*AKSNodeClassSpec)) string {
	t.Helper()
	size, family := int32(128), ImageFamilyUbuntu
	c := &AKSNodeClass{Spec: AKSNodeClassSpec{OSDiskSizeGB: &size, ImageFamily: &family, Tags: map[string]string{"team": "a"}}}
	change(&c.Spec)
	h, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHashCoversEveryFieldThatReplacesMachines(t *testing.T) {
	base := hashOf(t, func(*AKSNodeClassSpec) {})
	size, pods, yes, version, managed := int32(64), int32(50), true, "202506.13.0", ManagementModeManaged
	for name, change := range map[string]func(*AKSNodeClassSpec){
		"osDiskSizeGB":     func(s *AKSNodeClassSpec) { s.OSDiskSizeGB = &size },
		"maxPods":          func(s *AKSNodeClassSpec) { s.MaxPods = &pods },
		"imageVersion":     func(s *AKSNodeClassSpec) { s.ImageVersion = &version },
		"managementMode":   func(s *AKSNodeClassSpec) { s.GPU = &GPU{Nvidia: &NvidiaGPU{ManagementMode: &managed}} },
		"encryptionAtHost": func(s *AKSNodeClassSpec) { s.Security = &Security{EncryptionAtHost: &yes} },
	} {
		if hashOf(t, change) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}
}

func TestHashIgnoresTags(t *testing.T) {
	base := hashOf(t, func(*AKSNodeClassSpec) {})
	if got := hashOf(t, func(s *AKSNodeClassSpec) { s.Tags = map[string]string{"team": "b"} }); got != base {
		t.Errorf("tags change the hash from %s to %s", base, got)
	}
}

// hashesFile holds specs with their hashes as Azure/karpenter-provider-azure computes them
// (pkg/apis/v1beta1 at 352646f: its types were compiled and asked), and those of nap before its
// types were the same.
const hashesFile = "testdata/hashes.txt"

func TestHashIsUpstreams(t *testing.T) {
	data, err := os.ReadFile(hashesFile)
	if err != nil {
		t.Fatal(err)
	}
	specs := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		decoder := json.NewDecoder(strings.NewReader(fields[2]))
		decoder.DisallowUnknownFields()
		class := &AKSNodeClass{}
		if err := decoder.Decode(&class.Spec); err != nil {
			t.Fatalf("%s: %v", fields[2], err)
		}
		got, err := class.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if got != fields[0] {
			t.Errorf("%s: hash %s, upstream's is %s", fields[2], got, fields[0])
		}
		specs++
	}
	if specs < 500 {
		t.Errorf("%d specs in %s, want 500 or more", specs, hashesFile)
	}
}
