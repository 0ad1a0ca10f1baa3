package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// An error of a library that has paragraphs is one line; several errors are a line each.
func TestErrorsWithParagraphsAreOneLine(t *testing.T) {
	const plugin = "exec: executable kubelogin not found\n\nA plugin is not installed.\n\nTo learn more, see:\n      https://k8s.example/auth\n"
	for text, want := range map[string]string{
		plugin: "nap: exec: executable kubelogin not found. A plugin is not installed. To learn more, see: https://k8s.example/auth\n",
		"a\nb": "nap: a\nnap: b\n",
	} {
		var errs bytes.Buffer
		root := &cobra.Command{RunE: func(*cobra.Command, []string) error { return errors.New(text) }}
		if Run(t.Context(), root, nil, Streams{Err: &errs, Out: io.Discard}); errs.String() != want {
			t.Errorf("said %q, want %q", errs.String(), want)
		}
	}
}

// endless is what never has an end and never has a byte, as a terminal at which no key is hit.
type endless struct{ asked chan struct{} }

func (e endless) Read([]byte) (int, error) {
	close(e.asked)
	select {}
}

// TestInterruptsEndReadingStandardInput: a read that waits ends with the context.
func TestInterruptsEndReadingStandardInput(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	in := endless{make(chan struct{})}
	go func() { <-in.asked; interrupt() }()
	var errs bytes.Buffer
	s := Streams{In: in, Err: &errs}.Until(ctx)
	root := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		_, err := io.ReadAll(s.In)
		return fmt.Errorf("read the objects: %w", err)
	}}
	if code := Run(ctx, root, nil, s); code != 130 || errs.String() != "nap: interrupted\n" {
		t.Errorf("exit code %d, said %q", code, errs.String())
	}
	if s.Whole().In != io.Reader(in) {
		t.Error("another program would not get the input as it is")
	}
}

func TestInputIsReadAsItIs(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	got, err := io.ReadAll(Streams{In: bytes.NewReader(text)}.Until(t.Context()).In)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(text), err)
	}
}

// TestInterruptsAreToldAsSuch: what comes of a signal, and nothing else.
func TestInterruptsAreToldAsSuch(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		said string
	}{
		"its context ended":       {ended, fmt.Errorf("reading the catalogue: %w", context.Canceled), 130, "nap: interrupted\n"},
		"a library told it":       {ended, errors.New("rate limiter: context canceled"), 130, "nap: interrupted\n"},
		"it says where":           {ended, errors.New("interrupted: it had not answered"), 130, "nap: interrupted: it had not answered\n"},
		"something else":          {ended, errors.New("no such file"), 1, "nap: no such file\n"},
		"an answer was there":     {ended, &ExitError{Code: 2}, 2, ""},
		"no interrupt":            {t.Context(), fmt.Errorf("ask: %w", context.Canceled), 1, "nap: ask: context canceled\n"},
		"several, and one is one": {ended, errors.Join(errors.New("first"), context.Canceled), 130, "nap: interrupted\n"},
	} {
		var errs bytes.Buffer
		code := Run(c.ctx, &cobra.Command{RunE: func(*cobra.Command, []string) error { return c.err }}, nil, Streams{Err: &errs})
		if code != c.code || errs.String() != c.said {
			t.Errorf("%s: exit code %d, said %q, want %d and %q", name, code, errs.String(), c.code, c.said)
		}
	}
}
