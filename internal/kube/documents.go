package kube

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/nodeautoprovision/nap/internal/document"
)

// Decode reads the objects of a stream of YAML or JSON documents, Lists
// included. A document that cannot be read is reported with its source, and the
// others are still returned; the error joins all reports.
func Decode(r io.Reader, source string) ([]Manifest, error) {
	var out []Manifest
	var problems []error
	d := &decoder{generated: map[string]int{}, kinds: kinds()}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for n, more := 1, true; more; {
		var batch []document.Value
		batch, more = readBatch(documents)
		for i := range batch {
			doc, where := &batch[i], fmt.Sprintf("%s: document %d", source, n)
			n++
			found, err := []Manifest(nil), doc.Err
			if err == nil {
				found, err = d.decode(doc.JSON, where, metav1.TypeMeta{})
			} else {
				err = fmt.Errorf("%s: %w", where, err)
			}
			if err != nil {
				problems = append(problems, err)
			}
			out = append(out, found...)
		}
	}
	return out, errors.Join(problems...)
}

// batchBytes is from how many bytes on a batch of documents is converted, so that a stream of
// many is not held as a whole.
const batchBytes = 1 << 20

// readBatch reads some documents and converts them, several at the same time. There are no
// more where the stream ends or cannot be read. Each value of JSON counts as a document, and so
// does one that holds nothing.
func readBatch(documents *utilyaml.YAMLReader) (batch []document.Value, more bool) {
	var texts [][]byte
	var failed error
	for read := 0; read < batchBytes && failed == nil; {
		var text []byte
		if text, failed = documents.Read(); failed == nil {
			texts, read = append(texts, text), read+len(text)
		}
	}
	converted := make([][]document.Value, len(texts))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, text := range texts {
		g.Go(func() error {
			if converted[i] = document.Values(text); len(converted[i]) == 0 {
				converted[i] = make([]document.Value, 1)
			}
			return nil
		})
	}
	_ = g.Wait() // what is wrong stands in each document
	batch = slices.Concat(converted...)
	if failed != nil && !errors.Is(failed, io.EOF) {
		batch = append(batch, document.Value{Err: failed})
	}
	return batch, failed == nil
}
