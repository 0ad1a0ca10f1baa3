package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// standIn is a program that takes the place of nap's two.
const standIn = "package main\n\nvar version = \"development\"\n\nfunc main() { println(version) }\n"

// built makes stand-ins for platforms in a folder of their own, and returns the folders.
// One program is built, as the Makefile builds nap; for other architectures its header
// says another one, which is all that is looked at here.
func built(t *testing.T, platforms ...string) []string {
	t.Helper()
	root := t.TempDir()
	source, made := filepath.Join(root, "source"), filepath.Join(root, "made")
	for file, text := range map[string]string{"main.go": standIn, "go.mod": "module example.com/standin\n\ngo 1.26\n"} {
		if err := errors.Join(os.MkdirAll(source, 0o755), os.WriteFile(filepath.Join(source, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", made, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "-")
		b := build{dir: filepath.Join(root, platform), os: system, arch: arch}
		dirs = append(dirs, b.dir)
		text := slices.Clone(program)
		if arch == "arm64" {
			binary.LittleEndian.PutUint16(text[18:], uint16(elf.EM_AARCH64))
		}
		for _, p := range []string{"nap", "nap-controller"} {
			if err := errors.Join(os.MkdirAll(b.dir, 0o755), os.WriteFile(b.program(p), text, 0o755)); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
	}
	return dirs
}

// packaged runs a command of this program and returns what it printed.
func packaged(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// files are the contents of an image by path, and the modes.
func files(t *testing.T, img v1.Image) (map[string]string, map[string]int64) {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	texts, modes := map[string]string{}, map[string]int64{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return texts, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			texts[h.Name], modes[h.Name] = string(text), h.Mode
		}
	}
}

func TestImageIsTheSameWheneverItIsMade(t *testing.T) {
	archive := func() (line string, sum [32]byte) {
		dirs := built(t, "linux-amd64", "linux-arm64")
		path := filepath.Join(t.TempDir(), "nap-image.tar")
		line = packaged(t, append([]string{"image", "-version", "v1.2.3", "-out", path}, dirs...)...)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(line, path), sha256.Sum256(text)
	}
	first, sum := archive()
	second, again := archive()
	if first != second || sum != again || !strings.HasPrefix(first, " sha256:") {
		t.Errorf("made twice: %q, %q; the files are the same: %t", first, second, sum == again)
	}
}

func TestImageHasProgramsAndCertificatesAlone(t *testing.T) {
	dirs := built(t, "linux-amd64", "linux-arm64")
	path := filepath.Join(t.TempDir(), "nap-image.tar")
	packaged(t, append([]string{"image", "-version", "v1.2.3", "-out", path}, dirs...)...)
	index, err := unpack(path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/nap-controller"}) ||
			config.Architecture != m.Platform.Architecture || config.Created.Unix() != 0 {
			t.Errorf("%s: configuration %+v", m.Platform, config)
		}
		texts, modes := files(t, img)
		var names []string
		for n := range texts {
			names = append(names, n)
		}
		slices.Sort(names)
		want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "nap", "nap-controller"}
		if !slices.Equal(names, want) || modes["nap-controller"] != 0o755 {
			t.Errorf("%s: files %q, want %q; mode %o", m.Platform, names, want, modes["nap-controller"])
		}
		program, err := os.ReadFile(filepath.Join(filepath.Dir(dirs[0]), "linux-"+m.Platform.Architecture, "nap-controller"))
		if err != nil || texts["nap-controller"] != string(program) {
			t.Errorf("%s: the program is another one: %v", m.Platform, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(texts["etc/ssl/certs/ca-certificates.crt"])) || strings.Count(texts[want[2]], "BEGIN") < 100 {
			t.Errorf("%s: %d certificates", m.Platform, strings.Count(texts[want[2]], "BEGIN"))
		}
		// Azure's own services have certificates below these roots.
		for _, root := range []string{"DigiCert Global Root G2", "Microsoft RSA Root Certificate Authority 2017"} {
			if !slices.ContainsFunc(pool.Subjects(), func(s []byte) bool { return bytes.Contains(s, []byte(root)) }) { //nolint:staticcheck // no system pool
				t.Errorf("%s: %s is missing", m.Platform, root)
			}
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", platforms)
	}
}

func TestPushedImageHasTheArchivesDigest(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "nap-image.tar")
	line := packaged(t, append([]string{"image", "-version", "v1.2.3", "-out", path}, built(t, "linux-amd64")...)...)
	digest := strings.TrimSpace(strings.TrimPrefix(line, path))
	reference := strings.TrimPrefix(server.URL, "http://") + "/platform/nap:v1.2.3"
	if got, want := packaged(t, "push", path, reference), strings.TrimSuffix(reference, ":v1.2.3")+"@"+digest+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Get(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest.String() != digest {
		t.Errorf("the registry has %s, the archive %s", got.Digest, digest)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	dirs := built(t, "linux-amd64", "darwin-arm64")
	other := filepath.Join(t.TempDir(), "linux-arm64")
	if err := os.CopyFS(other, os.DirFS(dirs[0])); err != nil {
		t.Fatal(err)
	}
	dynamic := filepath.Join(t.TempDir(), "linux-amd64")
	for _, p := range []string{"nap", "nap-controller"} {
		text, err := os.ReadFile(filepath.Join(dirs[0], p))
		if err != nil {
			t.Fatal(err)
		}
		// The first program header says that the program needs a loader.
		binary.LittleEndian.PutUint32(text[binary.LittleEndian.Uint64(text[32:]):], uint32(elf.PT_INTERP))
		if err := errors.Join(os.MkdirAll(dynamic, 0o755), os.WriteFile(filepath.Join(dynamic, p), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "image.tar")
	for want, args := range map[string][]string{
		"give image, push or release":                        nil,
		"bundle: allowed are image, push and release":        {"bundle", "-version", "v1", "-out", out, dirs[0]},
		"at least one folder of programs must be given":      {"image", "-version", "v1", "-out", out},
		"must be a folder of programs that is called":        {"image", "-version", "v1", "-out", out, "nowhere/linux-amd64"},
		"images are made for Linux alone":                    {"image", "-version", "v1", "-out", out, dirs[1]},
		"is for EM_X86_64, not for arm64":                    {"image", "-version", "v1", "-out", out, other},
		"is linked dynamically: build it with CGO_ENABLED=0": {"image", "-version", "v1", "-out", out, dynamic},
		"`make image` makes it":                              {"push", filepath.Join(t.TempDir(), "none.tar"), "registry.example/nap:v1"},
		"is not a reference such as REGISTRY/nap:VERSION":    {"push", out, "registry.example/NAP"},
		"push: give the archive, and the reference":          {"push", out},
		"reading what goes into every archive: open nofile":  {"release", "-version", "v1", "-out", t.TempDir(), "-text", "nofile", dirs[0]},
	} {
		err := run(args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an image was written")
	}
}

// content are the files of an archive.
func content(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if strings.HasSuffix(path, ".zip") {
		r, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, f := range r.File {
			part, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(part)
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = string(text)
		}
		return out
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(packed); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(text)
	}
}

func TestReleaseHasEveryPlatformAndChecksums(t *testing.T) {
	dirs := built(t, "linux-amd64", "darwin-arm64", "windows-amd64")
	shell, license := t.TempDir(), filepath.Join(t.TempDir(), "LICENSE")
	for path, text := range map[string]string{filepath.Join(shell, "nap.bash"): "complete", license: "license"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	release := func() string {
		dir := filepath.Join(t.TempDir(), "release")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "nap-1.2.3.tgz"), []byte("chart"), 0o600)); err != nil {
			t.Fatal(err)
		}
		packaged(t, append([]string{"release", "-version", "v1.2.3", "-out", dir, "-shell", shell, "-text", license}, dirs...)...)
		return dir
	}
	dir := release()
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(sums)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if sum != fmt.Sprintf("%x", sha256.Sum256(text)) {
			t.Errorf("the checksum of %s is wrong", file)
		}
		names = append(names, file)
	}
	want := []string{
		"kubectl-nap_1.2.3_darwin_arm64.tar.gz", "kubectl-nap_1.2.3_linux_amd64.tar.gz", "kubectl-nap_1.2.3_windows_amd64.zip",
		"nap-1.2.3.tgz", "nap_1.2.3_darwin_arm64.tar.gz", "nap_1.2.3_linux_amd64.tar.gz", "nap_1.2.3_sbom.cdx.json", "nap_1.2.3_windows_amd64.zip",
	}
	if !slices.Equal(names, want) {
		t.Errorf("released are %q, want %q", names, want)
	}
	for file, want := range map[string][]string{
		"nap_1.2.3_linux_amd64.tar.gz":         {"LICENSE", "completions/nap.bash", "nap", "nap-controller"},
		"nap_1.2.3_windows_amd64.zip":          {"LICENSE", "completions/nap.bash", "nap-controller.exe", "nap.exe"},
		"kubectl-nap_1.2.3_windows_amd64.zip":  {"LICENSE", "kubectl-nap.exe"},
		"kubectl-nap_1.2.3_linux_amd64.tar.gz": {"LICENSE", "kubectl-nap", "kubectl_complete-nap"},
	} {
		got := content(t, filepath.Join(dir, file))
		var names []string
		for n := range got {
			names = append(names, n)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s has %q, want %q", file, names, want)
		}
	}
	plugin := content(t, filepath.Join(dir, "kubectl-nap_1.2.3_linux_amd64.tar.gz"))["kubectl-nap"]
	if nap := content(t, filepath.Join(dir, "nap_1.2.3_linux_amd64.tar.gz"))["nap"]; plugin == "" || plugin != nap {
		t.Error("the plugin is another program than nap")
	}
	bill, err := os.ReadFile(filepath.Join(dir, "nap_1.2.3_sbom.cdx.json"))
	if err != nil || !strings.Contains(string(bill), `"bomFormat": "CycloneDX"`) || !strings.Contains(string(bill), "pkg:golang/stdlib@1.") {
		t.Errorf("the bill of materials is %s, %v", bill, err)
	}
	again, err := os.ReadFile(filepath.Join(release(), "SHA256SUMS"))
	if err != nil || !bytes.Equal(sums, again) {
		t.Errorf("made twice, the checksums differ: %v\n%s%s", err, sums, again)
	}
}
