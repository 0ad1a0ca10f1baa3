package v1beta1

import "testing"

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
	size, pods, yes, version := int32(64), int32(50), true, "202506.13.0"
	for name, change := range map[string]func(*AKSNodeClassSpec){
		"osDiskSizeGB":     func(s *AKSNodeClassSpec) { s.OSDiskSizeGB = &size },
		"maxPods":          func(s *AKSNodeClassSpec) { s.MaxPods = &pods },
		"imageVersion":     func(s *AKSNodeClassSpec) { s.ImageVersion = &version },
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
