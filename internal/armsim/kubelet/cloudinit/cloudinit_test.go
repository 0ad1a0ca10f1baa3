package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io/fs"
	"strings"
	"testing"
)

// document is a MIME document of parts, as pairs of type and content.
func document(parts ...string) []byte {
	var out strings.Builder
	out.WriteString("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"XX\"\r\n\r\n")
	for i := 0; i < len(parts); i += 2 {
		out.WriteString("--XX\r\nContent-Type: " + parts[i] + "\r\nMIME-Version: 1.0\r\n\r\n" + parts[i+1] + "\r\n")
	}
	out.WriteString("--XX--\r\n")
	return []byte(out.String())
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

var programFiles = map[string]File{"/opt/start.sh": {Mode: 0o755}, "/etc/systemd/system/node.service": {Mode: 0o644}}

const hook = `#cloud-boothook
#!/bin/bash
set -euo pipefail
TO=/etc/config.json # a comment
mkdir -p /etc; logger -t x "boot $(date -Ins)"
cat <<'EOF' | base64 -d >${TO}
eyJhIjoxfQ==
EOF
chmod 0600 "$TO"
install -m 0640 /dev/null /etc/mode; echo x >/etc/mode
cat <<EOF >/etc/text
to \$HOME $TO
EOF
if [ -f /opt/none.sh ]; then
	nohup /bin/bash /opt/none.sh > /var/log/out 2>&1 &
elif [ -f /opt/start.sh ] && ! false; then
	nohup /bin/bash /opt/start.sh > /var/log/out 2>&1 &
else
	systemctl start --no-block node.service
fi
`

func TestBoothookWritesFilesAndStartsPrograms(t *testing.T) {
	for name, data := range map[string][]byte{
		"MIME document": document("text/cloud-boothook", hook, "text/cloud-config", "#cloud-config\nruncmd: [ls]\n"),
		"compressed":    zipped(document("text/cloud-boothook", hook)),
		"script alone":  []byte(hook),
		"base64 part": document("text/cloud-boothook; charset=utf-8\r\nContent-Transfer-Encoding: base64",
			base64.StdEncoding.EncodeToString([]byte(hook))),
		"line ends of Windows": []byte(strings.ReplaceAll(string(document("text/cloud-boothook", hook)), "\n", "\r\n")),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Boot(data, programFiles)
			if err != nil {
				t.Fatal(err)
			}
			if f := m.Files["/etc/config.json"]; string(f.Data) != `{"a":1}` || f.Mode != 0o600 {
				t.Errorf("configuration %q with mode %#o", f.Data, f.Mode)
			}
			if f := m.Files["/etc/text"]; string(f.Data) != "to $HOME /etc/config.json\n" || f.Mode != 0o644 {
				t.Errorf("text %q with mode %#o", f.Data, f.Mode)
			}
			if f := m.Files["/etc/mode"]; string(f.Data) != "x\n" || f.Mode != 0o640 {
				t.Errorf("a file that was there is %q with mode %#o", f.Data, f.Mode)
			}
			if len(m.Started) != 1 || m.Started[0].Name != "/opt/start.sh" || m.Started[0].Files["/etc/config.json"].Mode != fs.FileMode(0o600) {
				t.Errorf("started %+v", m.Started)
			}
		})
	}
}

func TestCustomDataThatCloudInitCannotUse(t *testing.T) {
	script := func(lines string) []byte { return []byte("#cloud-boothook\n#!/bin/bash\n" + lines + "\n") }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no format":              {[]byte("export A=b"), "ignores them"},
		"one type for all":       {[]byte("MIME-Version: 1.0\nContent-Type: text/plain\n\nx"), "want multipart/mixed"},
		"no end":                 {[]byte("Content-Type: multipart/mixed; boundary=XX\n\n--XX\nContent-Type: text/cloud-config\n\nx"), "EOF"},
		"cloud-config no YAML":   {document("text/cloud-config", "a: [b"), "part 1 of the custom data, text/cloud-config: no YAML"},
		"no interpreter":         {[]byte("#cloud-boothook\necho hello\n"), "begins without #!"},
		"interpreter not there":  {[]byte("#cloud-boothook\n#!/usr/bin/perl\n"), `interpreter "/usr/bin/perl"`},
		"open quote":             {script("echo 'a"), "line 2: no closing '"},
		"open here-document":     {script("cat <<'EOF'\na"), "no end EOF"},
		"if without fi":          {script("if true; then\necho a"), "want fi"},
		"loop":                   {script("for a in b; do echo $a; done"), "more than the shell of a simulated machine can do"},
		"program not there":      {script("set -e\npython3 -c x"), "exit code 127: bash: python3: command not found"},
		"set -e ends the script": {script("set -e\nfalse\ntouch /a"), "exit code 1"},
		"pipefail":               {script("set -eo pipefail\ncat /none | base64 -d >/a"), "/none: No such file"},
		"unset variable":         {script("set -u\necho $NONE"), "NONE: unbound variable"},
		"no base64":              {script("set -e\necho '%%' | base64 -d >/a"), "invalid input"},
		"unit not there":         {script("set -e\nsystemctl start other"), "other.service not found"},
		"bomb":                   {zipped(make([]byte, maxUnpacked+1)), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Boot(c.data, programFiles)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(m.Started) > 0 {
				t.Errorf("started %+v", m.Started)
			}
		})
	}
}

func TestScriptSemantics(t *testing.T) {
	for script, want := range map[string]string{
		"echo a && echo b || echo c":                   "a\nb\n",
		"false && echo b || echo c":                    "c\n",
		"set -e; ! true; false || true; echo end":      "end\n",
		`A=1; echo "$A" '$A' \$A ${A}b`:                "1 $A $A 1b\n",
		"echo a >/x; echo b >>/x; cat /x":              "a\nb\n",
		"printf '%s=%s\\n' a b c d":                    "a=b\nc=d\n",
		"echo x | tee /y >/dev/null; cat </y":          "x\n",
		"echo lost >/dev/null 2>&1; echo $(echo sub)":  "sub\n",
		"[ a = b ] || [ -n '' ] || echo none":          "none\n",
		"cat <<-EOF\n\tindented\n\tEOF":                "indented\n",
		"exit 0; echo never":                           "",
		"touch /z; rm -f /z; [ ! -e /z ] && echo gone": "gone\n",
	} {
		m := Machine{Files: map[string]File{}}
		d := &disk{machine: &m}
		code, err := d.run("#!/bin/bash\n" + script + "\n")
		if err != nil || code != 0 || m.Log != want {
			t.Errorf("%s: %q, code %d, %v; want %q", script, m.Log, code, err, want)
		}
	}
}

func FuzzCustomDataNeverPanics(f *testing.F) {
	f.Add(document("text/cloud-boothook", hook))
	f.Add([]byte("#cloud-boothook\n#!/bin/sh\ncat <<A | base64 -d >b\n$(x"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = Boot(data, programFiles) })
}
