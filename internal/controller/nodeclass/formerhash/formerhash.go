// Package formerhash computes the hash of an AKSNodeClass as nap did before its types were
// upstream's. Its hashes of classes with linuxOSConfig, with zones of localDNS or with a CPU
// quota period of 0s were other ones than upstream's under the same version, "v3". Machines
// that carry them are stamped with today's hash instead of being replaced.
package formerhash

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mitchellh/hashstructure/v2"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// Of returns the hashes that nap may have written for the class's present spec, without
// today's. There is more than one where the API server's defaults of then decided what the
// spec said: artifactStreaming.enabled was false instead of unset, and an unset CPU quota
// period is 0s today.
func Of(class *v1beta1.AKSNodeClass) ([]string, error) {
	now, err := class.Hash()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(class.Spec)
	if err != nil {
		return nil, fmt.Errorf("read the spec of AKSNodeClass %q for its former hash: %w", class.Name, err)
	}
	var hashes []string
	for _, change := range []func(*AKSNodeClassSpec){
		func(*AKSNodeClassSpec) {}, unsetPeriod, streamingOff, func(s *AKSNodeClassSpec) { unsetPeriod(s); streamingOff(s) },
	} {
		var spec AKSNodeClassSpec
		if err := json.Unmarshal(raw, &spec); err != nil {
			return nil, fmt.Errorf("read the spec of AKSNodeClass %q for its former hash: %w", class.Name, err)
		}
		if spec.Kubelet != nil { // a list without entries is another value than none, and JSON leaves it out
			spec.Kubelet.AllowedUnsafeSysctls = class.Spec.Kubelet.AllowedUnsafeSysctls
		}
		change(&spec)
		sum, err := hashstructure.Hash(spec, hashstructure.FormatV2, v1beta1.HashOptions())
		if err != nil {
			return nil, fmt.Errorf("hash the former spec of AKSNodeClass %q: %w", class.Name, err)
		}
		if hash := fmt.Sprint(sum); hash != now && !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// unsetPeriod takes a CPU quota period of zero out, which today's type cannot tell from none.
func unsetPeriod(s *AKSNodeClassSpec) {
	if k := s.Kubelet; k != nil && k.CPUCFSQuotaPeriod != nil && k.CPUCFSQuotaPeriod.Duration == 0 {
		k.CPUCFSQuotaPeriod = nil
	}
}

// streamingOff adds the default that the CRD had.
func streamingOff(s *AKSNodeClassSpec) {
	if a := s.ArtifactStreaming; a != nil && a.Enabled == nil {
		off := false
		a.Enabled = &off
	}
}
