package prerequisitewatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Report is what the checks found. The zero value is that of a controller which has not
// looked yet.
type Report struct {
	// Results are the rows that the controller looks at, by their numbers; nil before the
	// first look.
	Results []prerequisites.Result
	// Doctor is the command that says more.
	Doctor string
}

const (
	// named is how many rows a message names; the rest is counted.
	named = 3
	// mostFinding is the length of a finding in a message, in bytes.
	mostFinding = 300
)

// Ran reports whether the controller has looked.
func (r *Report) Ran() bool { return r.Results != nil }

// Unmet are the rows that are not met, those that fail before warnings.
func (r *Report) Unmet() []prerequisites.Result {
	return append(r.with(prerequisites.Failed), r.with(prerequisites.Warning)...)
}

// Names are the names of the rows that are not met, in alphabetical order.
func (r *Report) Names() []string {
	var out []string
	for _, x := range r.Unmet() {
		out = append(out, x.Name)
	}
	slices.Sort(out)
	return out
}

// Fails reports whether a row fails that is more than a warning.
func (r *Report) Fails() bool { return len(r.with(prerequisites.Failed)) > 0 }

func (r *Report) with(v prerequisites.Verdict) []prerequisites.Result {
	var out []prerequisites.Result
	for _, x := range r.Results {
		if x.Verdict == v {
			out = append(out, x)
		}
	}
	return out
}

// Message names the first rows that are not met, what was found, and the command that says
// more, for a condition; empty where all are met.
func (r *Report) Message() string {
	unmet := r.Unmet()
	if len(unmet) == 0 {
		return ""
	}
	var parts []string
	for _, x := range unmet[:min(named, len(unmet))] {
		parts = append(parts, fmt.Sprintf("%d %s (%s): %s", x.Number, x.Name, x.Verdict, clip(x.Finding, mostFinding)))
	}
	if more := len(unmet) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s. What to do: %s", strings.Join(parts, "; "), r.Doctor)
}

// Line names the rows that are not met, for one line of a screen; empty where all are.
func (r *Report) Line() string {
	unmet := r.Unmet()
	if len(unmet) == 0 {
		return ""
	}
	var names []string
	for _, x := range unmet[:min(named, len(unmet))] {
		names = append(names, fmt.Sprintf("%s (%s)", x.Name, x.Verdict))
	}
	if more := len(unmet) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%d of %d prerequisites not met: %s; see nap doctor", len(unmet), len(r.Results), strings.Join(names, ", "))
}

// clip cuts a text to a length in bytes, with three dots for what is left out.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}
