package formerhash

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// The file's second column is what nap wrote before; "-" stands for the hash of today.
func TestFormerHashesAreRecognised(t *testing.T) {
	data, err := os.ReadFile("../../../../api/v1beta1/testdata/hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		class := &v1beta1.AKSNodeClass{}
		if err := json.Unmarshal([]byte(fields[2]), &class.Spec); err != nil {
			t.Fatal(err)
		}
		got, err := Of(class)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(got, fields[0]) {
			t.Errorf("%s: today's hash %s is among the former ones", fields[2], fields[0])
		}
		if fields[1] == "-" {
			continue
		}
		differ++
		if !slices.Contains(got, fields[1]) {
			t.Errorf("%s: former hashes %v, want %s among them", fields[2], got, fields[1])
		}
	}
	if differ < 100 {
		t.Errorf("%d specs whose hash differed, want 100 or more", differ)
	}
}

func TestFormerHashesAreFew(t *testing.T) {
	for spec, want := range map[string]int{`{}`: 0, `{"artifactStreaming":{}}`: 1, `{"linuxOSConfig":{}}`: 1} {
		class := &v1beta1.AKSNodeClass{}
		if err := json.Unmarshal([]byte(spec), &class.Spec); err != nil {
			t.Fatal(err)
		}
		if got, err := Of(class); err != nil || len(got) != want {
			t.Errorf("%s: former hashes %v, %v, want %d", spec, got, err, want)
		}
	}
}
