package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user is nap's in the container; it has no name that means something elsewhere.
	user = "65532:65532"
	// certificates is where Go's programs look for roots on Linux.
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

// entry is a file of a layer.
type entry struct {
	name string
	mode int64
	text []byte
}

// roots are the certificates that vouch for Azure and everything else, as PEM: those of
// Mozilla's list as the Go project publishes it. Those that are trusted with a condition
// are left out, since a file of certificates cannot state it.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer does not fail.
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// layer makes a layer of files. Times and owners are those of no machine.
func layer(entries []entry) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, e := range entries {
		for dir, rest, ok := "", e.name, true; ok; {
			var part string
			if part, rest, ok = strings.Cut(rest, "/"); !ok {
				break
			}
			if dir += part + "/"; made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Format: tar.FormatPAX}); err != nil {
				return nil, fmt.Errorf("writing folder %s: %w", dir, err)
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("writing %s: %w", e.name, err)
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, fmt.Errorf("writing %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("compressing a layer: %w", err)
	}
	return l, nil
}

// static refuses a program that is not for the platform, or needs a loader and
// libraries, which the image does not have.
func static(path string, b build) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: is not a program for Linux: %w", path, err)
	}
	defer f.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, ok := machines[b.arch]; !ok || f.Machine != want {
		return fmt.Errorf("%s: is for %s, not for %s", path, f.Machine, b.arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s: is linked dynamically: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}

// image is nap for one platform: the two programs, certificates, a user, and no shell.
func image(version string, b build) (v1.Image, error) {
	var programs []entry
	for _, p := range []string{"nap-controller", "nap"} {
		path := b.program(p)
		if err := static(path, b); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a program: %w", err)
		}
		programs = append(programs, entry{p, 0o755, text})
	}
	base, err := layer([]entry{
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{certificates, 0o644, roots()},
	})
	if err != nil {
		return nil, err
	}
	top, err := layer(programs)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, base, top); err != nil {
		return nil, fmt.Errorf("adding layers: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = b.os, b.arch
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		User: user, WorkingDir: "/", Entrypoint: []string{"/nap-controller"}, Env: []string{"PATH=/", "SSL_CERT_FILE=/" + certificates},
		Labels: map[string]string{
			"org.opencontainers.image.title": "nap", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, fmt.Errorf("writing the image's configuration: %w", err)
	}
	return img, nil
}

// writeImage writes the archive and prints the digest, by which it can be named.
func writeImage(archive, version string, builds []build, out io.Writer) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range builds {
		if b.os != "linux" {
			return fmt.Errorf("%s: images are made for Linux alone", b.dir)
		}
		img, err := image(version, b)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: b.os, Architecture: b.arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	dir, err := os.MkdirTemp("", "nap-image")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	if err := pack(archive, dir); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	fmt.Fprintf(out, "%s %s\n", archive, digest)
	return nil
}

// pack writes a folder into a tar file, in the order of names.
func pack(archive, dir string) (err error) {
	f, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("making the archive: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	return nil
}

// unpack reads the index of an archive that [writeImage] has written, into a folder.
func unpack(archive, dir string) (v1.ImageIndex, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w; `make image` makes it", err)
	}
	defer f.Close()
	files := tar.NewReader(f)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			return nil, fmt.Errorf("%s is not an OCI archive: %q: %w", archive, h.Name, err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", archive, err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is not an OCI archive: %w", archive, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s does not have one image: %w", archive, err)
	}
	return top.ImageIndex(manifest.Manifests[0].Digest)
}

// push sends an archive to a registry, with the credentials that container tools have
// written down, and prints the reference by digest.
func push(archive, reference string, out io.Writer) error {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("%q is not a reference such as REGISTRY/nap:VERSION: %w", reference, err)
	}
	dir, err := os.MkdirTemp("", "nap-push")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	index, err := unpack(archive, dir)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing to %s: %w", ref, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	fmt.Fprintf(out, "%s@%s\n", ref.Context(), digest)
	return nil
}
