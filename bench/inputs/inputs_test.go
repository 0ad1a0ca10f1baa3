package inputs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// Each kind is a file that nap plans for without a word on what is wrong with it: a measurement of
// documents that are refused says nothing.
func TestEveryKindIsPlanned(t *testing.T) {
	t.Setenv("KUBECONFIG", os.DevNull)
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			size := 8_000
			if slices.Contains([]string{"annotation", "labels", "resources", "terms"}, k.Name) {
				size = 120_000 // a document is that long
			}
			text, documents := k.Text(size)
			if n := bytes.Count(text, []byte(separator)) + 1; n != documents || len(text) > size {
				t.Errorf("%d bytes and %d documents, counted %d", len(text), n, documents)
			}
			if k.document != nil && documents <= 2+len(k.once) {
				t.Errorf("nothing is repeated in %d bytes", size)
			}
			if k.Name == "replicas" {
				text = bytes.Replace(text, []byte(`"replicas":200000`), []byte(`"replicas":200`), 1)
			}
			file := filepath.Join(t.TempDir(), "file.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			args := append([]string{"plan", "-f", file, "--budget", "0"}, k.args...)
			if code := cli.Main(t.Context(), args, "test", command.Streams{Out: &out, Err: &errs}); code == 1 || out.Len() == 0 {
				t.Errorf("nap plan ends with %d: %s", code, errs.String())
			}
			for _, bad := range []string{"nap: ", "ignored", "left out", "not in the input"} {
				if strings.Contains(errs.String(), bad) {
					t.Errorf("%q: %s", bad, errs.String())
				}
			}
		})
	}
}

func TestTableHasARowForEachKind(t *testing.T) {
	text, err := Table([]*Measured{{Kind: Kind{Says: "pods"}, Bytes: 1_500_000, Documents: 7, Elapsed: 2e9, CPU: 3e9, Peak: 4e8}})
	if err != nil || !strings.Contains(text, "| pods         | 7         | 1.50 MB | 2.00 s | 3.00 s         | 400 MB |") {
		t.Errorf("got %s (%v)", text, err)
	}
}
