package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
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
		var batch []document
		batch, more = readBatch(documents)
		for i := range batch {
			doc, where := &batch[i], fmt.Sprintf("%s: document %d", source, n)
			n++
			found, err := []Manifest(nil), doc.err
			if err == nil {
				found, err = d.decode(doc.json, where, metav1.TypeMeta{})
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

// document is one of a stream, as JSON, or what is wrong with it.
type document struct {
	json []byte
	err  error
}

// batchBytes is from how many bytes on a batch of documents is converted, so that a stream of
// many is not held as a whole.
const batchBytes = 1 << 20

// readBatch reads some documents and converts them, several at the same time. There are no
// more where the stream ends or cannot be read.
func readBatch(documents *utilyaml.YAMLReader) (batch []document, more bool) {
	var texts [][]byte
	var failed error
	for read := 0; read < batchBytes && failed == nil; {
		var text []byte
		if text, failed = documents.Read(); failed == nil {
			texts, read = append(texts, text), read+len(text)
		}
	}
	batch = make([]document, len(texts))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, text := range texts {
		g.Go(func() error {
			raw, err := asJSON(text)
			if err != nil {
				err = unreadable(text, err)
			}
			batch[i] = document{raw, err}
			return nil
		})
	}
	_ = g.Wait() // what is wrong stands in each document
	if failed != nil && !errors.Is(failed, io.EOF) {
		batch = append(batch, document{err: failed})
	}
	return batch, failed == nil
}

// asJSON is a document as JSON. What is JSON already, as kubectl prints large clusters, is
// not read as YAML, which takes several times as long.
func asJSON(doc []byte) ([]byte, error) {
	if text := bytes.TrimSpace(doc); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		return text, nil
	}
	return yaml.YAMLToJSON(doc)
}

// unreadable says why a document is none.
func unreadable(doc []byte, err error) error {
	if bytes.Contains(doc, []byte("{{")) {
		return errors.New("holds {{ }}, which is for a template engine: render it first, for instance with helm template")
	}
	return fmt.Errorf("is neither YAML nor JSON: %w", err)
}
