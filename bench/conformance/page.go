package conformance

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/bench"
)

// pageMark names the marks between which the tables stand on the page.
const pageMark = "conformance"

// WritePage writes the tables of the record into a page, between its marks.
func WritePage(path string, r *Record) error {
	return bench.WriteBetweenMarks(path, pageMark, Tables(r))
}

// Tables are the tables of the page: the sums, and each spec that a reader may ask about.
func Tables(r *Record) string {
	var out strings.Builder
	out.WriteString("## The definitions\n\n| suite | what it judges | specs | passed |\n|---|---|---|---|\n")
	for _, s := range Suites() {
		if s.Kind == API {
			counts := " | not run"
			if t, ran := r.API[s.Name]; ran {
				counts = fmt.Sprintf("%d | %d", t.Specs, t.Passed)
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", s.Name, s.Judges, counts)
		}
	}
	out.WriteString("\n## The controller\n\nA spec that is skipped or was not run counts as a miss.\n\n" +
		"| suite | what it judges | engine | specs | passed | failed | skipped | not run |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range Suites() {
		if s.Kind == Cluster {
			for _, engine := range []string{EngineNap, EngineKarpenter} {
				out.WriteString(r.sum(s, engine))
			}
		}
	}
	for _, s := range Suites() {
		if s.Kind == Cluster {
			out.WriteString(r.cases(s))
		}
	}
	return out.String()
}

// sum is the row of a suite with one engine.
func (r *Record) sum(s Suite, engine string) string {
	counts := map[State]int{}
	for _, spec := range r.Specs[s.Name] {
		if result, known := r.Of(s.Name, engine, spec); known {
			counts[result.State]++
		}
	}
	specs := len(r.Specs[s.Name])
	done := counts[Passed] + counts[Failed] + counts[Skipped]
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %d | %d | %d |\n",
		s.Name, s.Judges, engine, specs, counts[Passed], counts[Failed], counts[Skipped], specs-done)
}

// cases is the table of a suite's specs.
func (r *Record) cases(s Suite) string {
	if len(r.Specs[s.Name]) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n### %s\n\n| spec | nap | karpenter | reason |\n|---|---|---|---|\n", s.Name)
	for _, spec := range r.Specs[s.Name] {
		nap, reason := r.cell(s.Name, EngineNap, spec)
		karpenter, theirs := r.cell(s.Name, EngineKarpenter, spec)
		if reason == "" && theirs != "" {
			reason = "karpenter: " + theirs
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", inCell(spec), nap, karpenter, inCell(reason))
	}
	out.WriteString(r.phases(s))
	return out.String()
}

// cell is what came of a spec with one engine, and why if it did not pass.
func (r *Record) cell(suite, engine, spec string) (text, reason string) {
	result, ran := r.Of(suite, engine, spec)
	switch {
	case ran && result.State == Passed:
		return fmt.Sprintf("passed, %d s", result.Seconds), ""
	case ran:
		return string(result.State), cmp.Or(causeOf(suite, engine, spec), result.Message)
	case engine == EngineKarpenter:
		return "not run", ""
	}
	return "not run", cmp.Or(causeOf(suite, engine, spec), "no time yet")
}

// inCell makes a text safe for a cell of a table in Markdown.
func inCell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "[*]", "\\[*\\]", "`", "'").Replace(text)
}
