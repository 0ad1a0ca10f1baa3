package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// made is the time of every file in an archive: zip knows none before it.
var made = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go cannot say

// writeRelease writes archives of all builds, the bill of materials and checksums into
// a folder.
func writeRelease(dir, version, shell string, texts []string, builds []build, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	var common []entry
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading what goes into every archive: %w", err)
		}
		common = append(common, entry{filepath.Base(path), 0o644, text})
	}
	completions, err := folder(shell, "completions")
	if err != nil {
		return err
	}
	var files []string
	modules := map[string]*debug.Module{}
	for _, b := range builds {
		programs, err := b.programs(modules)
		if err != nil {
			return err
		}
		plugin := entry{filepath.Base(b.program("kubectl-nap")), 0o755, programs[0].text}
		for name, content := range map[string][]entry{
			"nap":         slices.Concat(programs, completions, common),
			"kubectl-nap": slices.Concat([]entry{plugin}, b.completion(), common),
		} {
			file, err := archive(filepath.Join(dir, fmt.Sprintf("%s_%s_%s_%s", name, strings.TrimPrefix(version, "v"), b.os, b.arch)), b.os, content)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
	}
	bill := filepath.Join(dir, fmt.Sprintf("nap_%s_sbom.cdx.json", strings.TrimPrefix(version, "v")))
	if err := writeBill(bill, version, modules); err != nil {
		return err
	}
	return writeSums(dir, append(files, bill), out)
}

// completion is the program which kubectl asks what could come after "kubectl nap". On
// Windows, where the name must end in .exe, there is none.
func (b build) completion() []entry {
	if b.os == "windows" {
		return nil
	}
	return []entry{{"kubectl_complete-nap", 0o755, []byte("#!/bin/sh\nexec kubectl-nap __complete \"$@\"\n")}}
}

// programs reads the programs of a build, nap first, and notes the modules that they are
// made of.
func (b build) programs(modules map[string]*debug.Module) ([]entry, error) {
	var out []entry
	for _, name := range []string{"nap", "nap-controller"} {
		path := b.program(name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a program: %w", err)
		}
		info, err := buildinfo.Read(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s does not say what it is made of: %w", path, err)
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path+"@"+m.Version] = m
		}
		modules["stdlib@"+info.GoVersion] = &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
		out = append(out, entry{filepath.Base(path), 0o755, text})
	}
	return out, nil
}

// folder reads the files of a folder, to lie in one of the name; no folder has none.
func folder(dir, as string) ([]entry, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading completions: %w", err)
	}
	var out []entry
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading completions: %w", err)
		}
		out = append(out, entry{as + "/" + f.Name(), 0o644, text})
	}
	return out, nil
}

// archive writes a zip file for Windows and a tar.gz for others, and returns its path.
func archive(path, system string, content []entry) (file string, err error) {
	file = path + ".tar.gz"
	if system == "windows" {
		file = path + ".zip"
	}
	f, err := os.Create(file)
	if err != nil {
		return "", fmt.Errorf("making an archive: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	write := writeTar
	if system == "windows" {
		write = writeZip
	}
	if err := write(f, content); err != nil {
		return "", fmt.Errorf("writing %s: %w", file, err)
	}
	return file, nil
}

func writeTar(f io.Writer, content []entry) error {
	packed := gzip.NewWriter(f)
	w := tar.NewWriter(packed)
	for _, e := range content {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.text)), ModTime: made, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.text); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

func writeZip(f io.Writer, content []entry) error {
	w := zip.NewWriter(f)
	for _, e := range content {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: made}
		h.SetMode(os.FileMode(e.mode))
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(e.text); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeBill writes what the programs are made of, as CycloneDX has it.
func writeBill(path, version string, modules map[string]*debug.Module) (err error) {
	var parts []cdx.Component
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		m := modules[key]
		c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, BOMRef: key}
		c.PackageURL = "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version
		if m.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
		}
		parts = append(parts, c)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: "nap", Version: version, BOMRef: "nap",
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}}
	bom.Components = &parts
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making the bill of materials: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("writing the bill of materials: %w", err)
	}
	return nil
}

// writeSums writes SHA256SUMS for the files, and charts that lie beside them, as
// sha256sum --check reads it.
func writeSums(dir string, files []string, out io.Writer) error {
	charts, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil {
		return fmt.Errorf("looking for charts: %w", err)
	}
	var sums strings.Builder
	for _, file := range slices.Sorted(slices.Values(append(files, charts...))) {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading what was written: %w", err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), filepath.Base(file))
		fmt.Fprintf(out, "%s %d\n", file, len(text))
	}
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil { //nolint:gosec // for all to read
		return fmt.Errorf("writing checksums: %w", err)
	}
	return nil
}
