package admission

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/api/crds"
)

func TestCheckRefusesWhatAPIServersRefuse(t *testing.T) {
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		`{}`:                        "",
		`{"imageFamily": "Ubuntu"}`: "",
		`{"imageFamly": "Ubuntu"}`:  "spec.imageFamly: there is no such field",
		`{"imageFamily": "Debian"}`: `spec.imageFamily: Unsupported value: "Debian"`,
		`{"osDiskSizeGB": 4}`:       "spec.osDiskSizeGB",
		`{"osDiskSizeGB": "big"}`:   "spec.osDiskSizeGB: Invalid value",
		`{"linuxOSConfig": {"sysctls": {"netIPv4IPLocalPortRange": "60999 32768"}}}`: "the first port of netIPv4IPLocalPortRange must be at most the last",
	} {
		text := `{"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": ` + spec + `}`
		err := Check(definitions[0], "v1beta1", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	for version, text := range map[string]string{"v9": "{}", "v1beta1": "[]"} {
		if err := Check(definitions[0], version, []byte(text)); err == nil {
			t.Errorf("version %s of %s passes", version, text)
		}
	}
}
