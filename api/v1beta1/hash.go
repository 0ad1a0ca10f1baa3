package v1beta1

import (
	"fmt"

	"github.com/mitchellh/hashstructure/v2"
)

// HashVersion names the way in which Hash is computed; it is upstream's version, and
// the hash is upstream's hash. It goes up whenever the
// same spec would get another hash, so that old machines are stamped again
// instead of replaced.
const HashVersion = "v3"

// Hash is the fingerprint of the spec without the fields that are changed in
// place. A machine whose class has another hash has drifted.
func (c *AKSNodeClass) Hash() (string, error) {
	sum, err := hashstructure.Hash(c.Spec, hashstructure.FormatV2, HashOptions())
	if err != nil {
		return "", fmt.Errorf("hash the spec of AKSNodeClass %q: %w", c.Name, err)
	}
	return fmt.Sprint(sum), nil
}

// HashOptions are the options of Hash, which are upstream's.
func HashOptions() *hashstructure.HashOptions {
	return &hashstructure.HashOptions{SlicesAsSets: true, IgnoreZeroValue: true, ZeroNil: true}
}
