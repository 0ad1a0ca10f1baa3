package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is a file on the machine's disk.
type File struct {
	Data []byte
	Mode fs.FileMode // permission bits
}

// Machine is a machine after cloud-init has run.
type Machine struct {
	// Files are those that custom data has written, by absolute path.
	Files map[string]File
	// Started are the programs and services that custom data has started, in order:
	// the path of a script, or the name of a systemd unit.
	Started []Start
	// Log is what the boothook has written to its output.
	Log string
}

// Start is a program or service that was started.
type Start struct {
	Name string
	// Files are the machine's files at that moment, so that a reader knows whether
	// what the program needs was there already.
	Files map[string]File
}

// The largest sizes that are unpacked: Azure limits custom data to 64 KiB as base64, and
// compressed data that unpacks to much more is an attack.
const maxUnpacked = 4 << 20

// Boot does the first boot of a machine with custom data, decoded from base64. image are the
// files that the machine's image has. An error says which part of the custom data cloud-init
// cannot use; the machine then boots without it, so what was done before it stays done.
func Boot(customData []byte, image map[string]File) (Machine, error) {
	m := Machine{Files: map[string]File{}}
	data, err := unzipped(customData)
	if err != nil {
		return m, err
	}
	parts, err := split(data)
	if err != nil {
		return m, err
	}
	disk := &disk{image: image, machine: &m}
	for i, p := range parts {
		if err := disk.handle(p); err != nil {
			return m, fmt.Errorf("part %d of the custom data, %s: %w", i+1, p.kind, err)
		}
	}
	return m, nil
}

// part is one MIME part.
type part struct {
	kind string // content type
	text string
}

// unzipped undoes the compression that cloud-init accepts.
func unzipped(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("custom data look compressed and are not: %w", err)
	}
	return readAll(r)
}

func readAll(r io.Reader) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(out) > maxUnpacked {
		err = fmt.Errorf("more than %d bytes", maxUnpacked)
	}
	return out, err
}

// split reads a MIME document. Custom data that are none are one part, told by how they begin.
func split(data []byte) ([]part, error) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	trimmed := strings.TrimLeft(text, " \t\n")
	if !strings.HasPrefix(trimmed, "MIME-Version:") && !strings.HasPrefix(trimmed, "Content-Type:") {
		return single(text)
	}
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("custom data are no MIME document: %w", err)
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("custom data have no content type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return nil, fmt.Errorf("custom data are %s, want multipart/mixed", kind)
	}
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	var parts []part
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("custom data, after %d parts: %w", len(parts), err)
		}
		one, err := decoded(p)
		if err != nil {
			return nil, fmt.Errorf("part %d of the custom data: %w", len(parts)+1, err)
		}
		parts = append(parts, one)
	}
}

// single is custom data without MIME.
func single(text string) ([]part, error) {
	for prefix, kind := range map[string]string{
		"#cloud-boothook": "text/cloud-boothook", "#cloud-config": "text/cloud-config", "#!": "text/x-shellscript",
	} {
		if strings.HasPrefix(text, prefix) {
			return []part{{kind, text}}, nil
		}
	}
	return nil, errors.New("custom data are neither a MIME document nor a script nor #cloud-config: cloud-init ignores them")
}

// decoded undoes a part's transfer encoding and compression.
func decoded(p *multipart.Part) (part, error) {
	kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
	if err != nil {
		return part{}, fmt.Errorf("content type: %w", err)
	}
	var r io.Reader = p
	switch encoding := strings.ToLower(p.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, p)
	case "quoted-printable":
		r = quotedprintable.NewReader(p)
	default:
		return part{}, fmt.Errorf("transfer encoding %q is unknown", encoding)
	}
	data, err := readAll(r)
	if err != nil {
		return part{}, fmt.Errorf("content: %w", err)
	}
	if data, err = unzipped(data); err != nil {
		return part{}, err
	}
	return part{kind: kind, text: strings.ReplaceAll(string(data), "\r\n", "\n")}, nil
}

// handle does what cloud-init does with a part at the first boot.
func (d *disk) handle(p part) error {
	switch p.kind {
	case "text/cloud-boothook":
		return d.boothook(p.text)
	case "text/cloud-config":
		var config map[string]any
		if err := yaml.Unmarshal([]byte(p.text), &config); err != nil {
			return fmt.Errorf("no YAML: %w", err)
		}
		return nil
	}
	// Scripts of other types run at the end of the boot, if at all, where they change
	// nothing of what is looked at here.
	return nil
}

// boothook writes a part out as an executable and runs it, as early in the boot as
// possible.
func (d *disk) boothook(text string) error {
	script := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, " \t\n"), "#cloud-boothook"), " \t\n")
	first, _, _ := strings.Cut(script, "\n")
	interpreter, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return errors.New("begins without #!, so the kernel cannot execute it")
	}
	if fields := strings.Fields(interpreter); len(fields) == 0 || !isShell(fields[0]) {
		return fmt.Errorf("interpreter %q is not on the image", interpreter)
	}
	code, err := d.run(script)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("ended with exit code %d: %s", code, lastLine(d.machine.Log))
	}
	return nil
}

func isShell(path string) bool {
	switch path {
	case "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh":
		return true
	}
	return false
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
