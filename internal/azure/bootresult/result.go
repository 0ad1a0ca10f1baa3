package bootresult

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/mask"
)

// lastLines is how many lines of the machine's log are told; longestLine is what each
// is cut to, in bytes.
const (
	lastLines   = 5
	longestLine = 160
)

// Result is how the provisioning of a node ended.
type Result struct {
	// ExitCode is that of the node's provisioning, 0 for success.
	ExitCode int
	// Error is what the node's program says of the failure beside its log; mostly empty.
	Error string
	// Lines are the last lines of the log, oldest first.
	Lines []string
}

var exitStatus = regexp.MustCompile(`exit status=(\d+)`)

// Parse reads the message of the extension; false when it says nothing of an exit
// code. The exit code in the JSON object counts before that of the command, which is
// 1 for every failure of the node's program.
func Parse(message string) (Result, bool) {
	_, after, _ := strings.Cut(message, "[stdout]")
	out, stderr, _ := strings.Cut(after, "[stderr]")
	if r, ok := parseObject(out); ok {
		return r, true
	}
	m := exitStatus.FindStringSubmatch(message)
	if m == nil {
		return Result{}, false
	}
	code, err := strconv.Atoi(m[1])
	if err != nil {
		return Result{}, false
	}
	r := Result{ExitCode: code, Lines: last(out)}
	if len(r.Lines) == 0 {
		r.Lines = last(strings.TrimRight(stderr, `"'. `))
	}
	return r, true
}

// parseObject reads the JSON object that the node's program prints. Numbers and texts
// are both accepted: images have written either.
func parseObject(text string) (Result, bool) {
	begin, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if begin < 0 || end < begin {
		return Result{}, false
	}
	var status struct {
		ExitCode      any
		Output, Error string
	}
	if err := json.Unmarshal([]byte(text[begin:end+1]), &status); err != nil {
		return Result{}, false
	}
	code, err := strconv.Atoi(fmt.Sprint(status.ExitCode))
	if err != nil {
		return Result{}, false
	}
	return Result{ExitCode: code, Error: oneLine(mask.Text(status.Error)), Lines: last(status.Output)}, true
}

// LastLines are the last lines of a log that say something, oldest first, each cut to
// what a condition has room for.
func LastLines(text string) []string { return last(text) }

// last are the last lines of a log that say something, without the secrets in them:
// they become conditions and events.
func last(text string) []string {
	var out []string
	for line := range strings.SplitSeq(mask.Text(text), "\n") {
		if line = oneLine(line); line != "" {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-lastLines):]
}

// oneLine is a text without runs of blanks, cut to what a condition has room for.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestLine {
		text = strings.ToValidUTF8(text[:longestLine], "") + "…"
	}
	return text
}

// Failed reports whether the machine did not become a node for what happened on it.
func (r Result) Failed() bool { return r.ExitCode != 0 }

// String is the result in words: exit code, its meaning, what to do, last lines.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "provisioning of the node ended with exit code %d", r.ExitCode)
	if c, known := CodeOf(r.ExitCode); known {
		fmt.Fprintf(&b, " (%s: %s)", c.Name, c.Meaning)
		if c.Remedy != "" {
			fmt.Fprintf(&b, "; %s", c.Remedy)
		}
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "; it says: %s", r.Error)
	}
	if len(r.Lines) > 0 {
		fmt.Fprintf(&b, "; last lines: %s", strings.Join(r.Lines, " | "))
	}
	return b.String()
}
