package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/kube"
)

func (p *planInput) readPath(name string, in io.Reader) error {
	if name == "-" {
		p.decode(in, "standard input")
		return nil
	}
	if strings.Contains(name, "://") {
		return fmt.Errorf("-f %s: addresses are not read; fetch it first: curl -L %s | nap plan -f -", name, name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("-f %s: %w: give the path of a file or folder, or - for standard input", name, plainPath(err))
	}
	if _, err := os.Stat(filepath.Join(name, "kustomization.yaml")); err == nil {
		return fmt.Errorf("-f %s: is a folder for kustomize; render it first: kubectl kustomize %s | nap plan -f -", name, name)
	}
	if !info.IsDir() {
		p.readFile(name)
		return nil
	}
	found := false
	// A link to a folder is walked as the folder.
	err = filepath.WalkDir(name+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // of a folder in it
			found = true
			p.refuse(unreadableFile(path, err))
		case !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			found = true
			p.readFile(path)
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("-f %s: has no .yaml, .yml or .json file: give a folder of manifests", name)
	}
	return err
}

// plainPath is an error of the file system without the call and the path.
func plainPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// unreadableFile is why a file or folder cannot be read, with what to do.
func unreadableFile(name string, err error) error {
	return fmt.Errorf("%s: cannot be read: %w; make it readable, or leave it out", name, plainPath(err))
}

// readFile reads the objects of a file. One that cannot be read is refused as one is that cannot
// be understood: it costs nothing but what is in it.
func (p *planInput) readFile(name string) {
	r, err := os.Open(name)
	if err != nil {
		p.refuse(unreadableFile(name, err))
		return
	}
	defer r.Close()
	text := bufio.NewReader(r)
	if start, err := text.Peek(len(gzipMagic)); err == nil && string(start) == gzipMagic {
		p.refuse(fmt.Errorf("%s: is compressed; unpack it first: gunzip -c %s | nap plan -f -", name, name))
		return
	}
	start, err := text.Peek(text.Size())
	switch {
	case bytes.IndexByte(start, 0) >= 0:
		p.refuse(fmt.Errorf("%s: is no text; give YAML or JSON, as kubectl get -o yaml prints it", name))
	case err != nil && !errors.Is(err, io.EOF):
		p.refuse(unreadableFile(name, err))
	default:
		p.decode(text, name)
	}
}

func (p *planInput) decode(r io.Reader, name string) {
	found, err := kube.Decode(r, name)
	if err != nil {
		p.refuse(err)
	}
	p.manifests = append(p.manifests, found...)
}

// refuse records what is wrong with objects, one line each. Of those that could not be read
// and whose kind has a definition, admit tells all that is wrong.
func (p *planInput) refuse(err error) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			p.refuse(e)
		}
		return
	}
	var unread *kube.Unread
	if errors.As(err, &unread) {
		if unread.Text != nil {
			p.unread = append(p.unread, unread)
			return
		}
		if meansNodePool(unread.Kind.Kind) {
			p.refusedPools = append(p.refusedPools, refusedPool{legible(unread), whyRefused(unread.Name, []error{errors.Unwrap(unread)})})
		}
	}
	p.problems = append(p.problems, err)
}

// inWords names files as messages do.
func inWords(files []string) string {
	names := slices.Clone(files)
	for i := range names {
		if names[i] == "-" {
			names[i] = "standard input"
		}
	}
	return strings.Join(names, " and ")
}
