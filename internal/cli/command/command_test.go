package command

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

func TestErrorsAreLinesWithoutSecrets(t *testing.T) {
	var out, errs bytes.Buffer
	root := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		return errors.New("read prices: invalid proxy address \"http://me:swordfish@proxy:31z\"\nset HTTPS_PROXY")
	}}
	code := Run(t.Context(), root, nil, Streams{Out: &out, Err: &errs})
	want := "nap: read prices: invalid proxy address \"http://***@proxy:31z\"\nnap: set HTTPS_PROXY\n"
	if code != 1 || out.Len() > 0 || errs.String() != want {
		t.Errorf("exit code %d, said %q, want %q", code, errs.String(), want)
	}
}
