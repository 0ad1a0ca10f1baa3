package bootresult

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write docs/boot-errors.md")

const page = "../../../docs/boot-errors.md"

// These are shapes of messages that Azure and the node image's own tests show.
func TestParseMessages(t *testing.T) {
	log := `Processing manual pages under /usr/local/man...\n++ date\n+ echo 'man-db finished updates'\n+ exit 50`
	object := `{ "ExitCode": "50", "Output": "` + log + `", "Error": "", "ExecDuration": "155", "BootDatapoints": { "KubeletStartTime": "n/a" } }`
	lines := []string{"Processing manual pages under /usr/local/man...", "++ date", "+ echo 'man-db finished updates'", "+ exit 50"}
	for name, c := range map[string]struct {
		message string
		want    Result
		none    bool
	}{
		"both codes say the same": {message: "failed to execute command: command terminated with exit status=50\n[stdout]\n" +
			object + "\n\n[stderr]\ndate: invalid date 'n/a'\n", want: Result{ExitCode: 50, Lines: lines}},
		"the node's code counts before the command's": {message: "Enable failed: failed to execute command: command terminated with exit status=1\n" +
			"[stdout]\n" + object + "\n\n[stderr]\n", want: Result{ExitCode: 50, Lines: lines}},
		"within an operation's error": {message: "VM has reported a failure when processing extension 'cse-agent-karpenter' (publisher " +
			"'Microsoft.Azure.Extensions' and type 'CustomScript'). Error message: \"Enable failed: failed to execute command: " +
			"command terminated with exit status=1\n[stdout]\n" + object + "\n\n[stderr]\n\". More information on troubleshooting is " +
			"available at https://aka.ms/VMExtensionCSELinuxTroubleshoot.", want: Result{ExitCode: 50, Lines: lines}},
		"a refused configuration": {message: `Enable failed: exit status=1 [stdout]{"ExitCode":"240","Error":"unsupported version: v2","Output":""}[stderr]`,
			want: Result{ExitCode: 240, Error: "unsupported version: v2"}},
		"a number instead of a text": {message: `[stdout]{"ExitCode":0,"Output":"+ exit 0"}[stderr]`, want: Result{Lines: []string{"+ exit 0"}}},
		"no object":                  {message: "command terminated with exit status=127\n[stdout]\n\n[stderr]\nsh: 1: no such file\n", want: Result{ExitCode: 127, Lines: []string{"sh: 1: no such file"}}},
		"cut off by Azure":           {message: `exit status=1 [stdout]{"ExitCode":"51","Output":"+ ex`, want: Result{ExitCode: 1, Lines: []string{`{"ExitCode":"51","Output":"+ ex`}}},
		"nothing of a code":          {message: "Enable failed with no parsable body", none: true},
		"secrets of the machine": {message: `[stdout]{"ExitCode":"50","Error":"token=swordfish","Output":"+ curl -x http://me:swordfish@proxy:3128 https://y\n` +
			`-----BEGIN PRIVATE KEY-----\nswordfish\n-----END PRIVATE KEY-----"}[stderr]`,
			want: Result{ExitCode: 50, Error: "token=***", Lines: []string{"+ curl -x http://***@proxy:3128 https://y", "***"}}},
		"success": {message: "Enable succeeded: \n[stdout]\n" + strings.Replace(object, "50", "0", 1) + "\n[stderr]\n", want: Result{Lines: lines}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Parse(c.message)
			if ok == c.none {
				t.Fatalf("read: %v", ok)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResultInWords(t *testing.T) {
	r := Result{ExitCode: 51, Lines: []string{"+ nc -vz api 443", "+ exit 51"}}
	const want = "provisioning of the node ended with exit code 51 (ERR_K8S_API_SERVER_CONN_FAIL: the machine does not reach the API server); " +
		"check that the nodes' subnet reaches the API server on port 443 (security group, firewall, private cluster's network); " +
		"last lines: + nc -vz api 443 | + exit 51"
	if got := r.String(); got != want || !r.Failed() {
		t.Errorf("got %s, want %s", got, want)
	}
	unknown := Result{ExitCode: 199, Error: "no idea"}
	if got := unknown.String(); got != "provisioning of the node ended with exit code 199; it says: no idea" {
		t.Errorf("unknown: %s", got)
	}
	long := "[stdout]{\"ExitCode\":\"34\",\"Output\":\"" + strings.Repeat(strings.Repeat("ä", 300)+`\n`, 40) + "\"}[stderr]"
	if r, _ := Parse(long); len(r.String()) > 1200 || strings.ContainsRune(r.String(), '\uFFFD') {
		t.Errorf("of a long log %d bytes are told: %s", len(r.String()), r)
	}
}

func TestCodesAreInOrder(t *testing.T) {
	last := 0
	for _, c := range Codes() {
		if c.Number <= last || c.Number > 255 || c.Meaning == "" || strings.HasSuffix(c.Meaning, ".") {
			t.Errorf("row %+v after %d", c, last)
		}
		last = c.Number
	}
}

func TestPageOfBootErrorsMatchesTable(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Exit codes of a boot

When a machine does not become a node, its NodeClaim has the condition ` + "`Booted=False`" + ` with
one of these exit codes ([machines.md](machines.md) says where nap reads it). The names are those
of AKS's node images, whose scripts are public (Azure/AgentBaker,
` + "`parts/linux/cloud-init/artifacts/cse_helpers.sh`" + `). Where there is no advice, the last lines in
the condition's message say more than the code does.

| exit code | name | what happened | what to do |
|---|---|---|---|
`)
	for _, c := range Codes() {
		name := ""
		if c.Name != "" {
			name = "`" + c.Name + "`"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", c.Number, name, c.Meaning, c.Remedy)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != b.String() {
		t.Errorf("%s does not list the exit codes as they are; run this test with -rewrite", page)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add("[stdout]{[stderr]")
	f.Add("exit status=99999999999999999999")
	f.Fuzz(func(t *testing.T, message string) {
		if r, ok := Parse(message); ok && r.String() == "" {
			t.Error("no words")
		}
	})
}
