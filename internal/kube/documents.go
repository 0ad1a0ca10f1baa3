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
	for n, more := 0, true; more; {
		var batch []document.Value
		batch, more = readBatch(documents)
		for _, doc := range d.decodeBatch(batch, source, n) {
			if doc.err != nil {
				problems = append(problems, doc.err)
			}
			d.name(doc.objects)
			out = append(out, doc.objects...)
		}
		n += len(batch)
	}
	return out, errors.Join(problems...)
}

// content is what a document holds. Both may be there: of a list, one item may be unreadable.
type content struct {
	objects []Manifest
	err     error
}

// decodeBatch decodes documents, several at the same time; so many came before them.
func (d *decoder) decodeBatch(batch []document.Value, source string, before int) []content {
	out := make([]content, len(batch))
	atOnce(len(batch), func(i int) {
		doc, where := &batch[i], fmt.Sprintf("%s: document %d", source, before+i+1)
		if doc.Err != nil {
			out[i].err = fmt.Errorf("%s: %w", where, doc.Err)
			return
		}
		out[i].objects, out[i].err = d.decode(doc.JSON, where, metav1.TypeMeta{})
	})
	return out
}

// atOnce calls do for 0 to n-1, as many at the same time as there are cores.
func atOnce(n int, do func(i int)) {
	const share = 32 // of them are done by one goroutine: most documents are short
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += share {
		g.Go(func() error {
			for i := from; i < min(from+share, n); i++ {
				do(i)
			}
			return nil
		})
	}
	_ = g.Wait() // no call fails
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
	atOnce(len(texts), func(i int) {
		if converted[i] = document.Values(texts[i]); len(converted[i]) == 0 {
			converted[i] = make([]document.Value, 1)
		}
	})
	batch = slices.Concat(converted...)
	if failed != nil && !errors.Is(failed, io.EOF) {
		batch = append(batch, document.Value{Err: failed})
	}
	return batch, failed == nil
}
