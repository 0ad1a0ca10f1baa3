// Command package makes what is released of nap, from programs that are built already:
// the image for containers, and archives for people. It needs no container engine.
//
//	package image -version V -out ARCHIVE DIR...     an OCI archive; one DIR per platform, such as bin/linux-amd64
//	package push ARCHIVE REFERENCE                   sends the archive to a registry
//	package release -version V -out FOLDER -shell FOLDER -text FILE DIR...
//
// The same programs give the same bytes, whenever and wherever it runs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("give image, push or release")
	}
	fs := flag.NewFlagSet("package "+args[0], flag.ContinueOnError)
	fs.SetOutput(out)
	version := fs.String("version", "", "version of nap")
	target := fs.String("out", "", "file or folder to write")
	shell := fs.String("shell", "", "folder with completions for shells")
	text := fs.String("text", "", "files that go into every archive, by comma")
	if err := fs.Parse(args[1:]); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if args[0] == "push" {
		if fs.NArg() != 2 {
			return errors.New("push: give the archive, and the reference to push it to")
		}
		return push(fs.Arg(0), fs.Arg(1), out)
	}
	if *version == "" || *target == "" || fs.NArg() == 0 {
		return fmt.Errorf("%s: -version, -out and at least one folder of programs must be given", args[0])
	}
	var builds []build
	for _, dir := range fs.Args() {
		b, err := parseBuild(dir)
		if err != nil {
			return err
		}
		builds = append(builds, b)
	}
	switch args[0] {
	case "image":
		return writeImage(*target, *version, builds, out)
	case "release":
		return writeRelease(*target, *version, *shell, strings.Split(*text, ","), builds, out)
	}
	return fmt.Errorf("%s: allowed are image, push and release", args[0])
}

// build is a folder with the programs of one platform.
type build struct{ dir, os, arch string }

// parseBuild reads the platform from the folder's name, such as bin/linux-amd64.
func parseBuild(dir string) (build, error) {
	system, arch, ok := strings.Cut(filepath.Base(dir), "-")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !ok {
		return build{}, fmt.Errorf("%s: must be a folder of programs that is called OS-ARCHITECTURE", dir)
	}
	return build{dir: dir, os: system, arch: arch}, nil
}

// program is the path of a program of the build.
func (b build) program(name string) string {
	if b.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(b.dir, name)
}
