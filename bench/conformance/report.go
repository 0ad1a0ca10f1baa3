package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// State is what came of a spec.
type State string

// A spec that was cut short counts as failed, one that is pending as skipped.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Spec is one case of a suite as the report of Ginkgo has it.
type Spec struct {
	// Text is the names of the spec's containers and its own, separated by spaces.
	Text  string
	State State
	Took  time.Duration
	// Message is why the spec did not pass: the first lines of what it says.
	Message string
}

// ginkgoReport is what of a report of Ginkgo is read.
type ginkgoReport struct {
	SuiteDescription           string
	SpecialSuiteFailureReasons []string
	SpecReports                []struct {
		ContainerHierarchyTexts []string
		LeafNodeText            string
		LeafNodeType            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

// ReadReport reads the specs of a report that Ginkgo has written with
// --ginkgo.json-report. It is an error if the suite's set-up failed, for then its specs
// say nothing.
func ReadReport(path string) (description string, specs []Spec, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("read the report of a suite: %w", err)
	}
	var reports []ginkgoReport
	if err := json.Unmarshal(text, &reports); err != nil {
		return "", nil, fmt.Errorf("read the report %s: %w", path, err)
	}
	for _, r := range reports {
		description = r.SuiteDescription
		for _, s := range r.SpecReports {
			switch s.LeafNodeType {
			case "BeforeSuite", "SynchronizedBeforeSuite":
				if s.State != string(Passed) {
					return description, nil, fmt.Errorf("the set-up of suite %s: %s: %s", description, s.State, shorten(s.Failure.Message))
				}
			case "It":
				specs = append(specs, Spec{
					Text:  strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "),
					State: stateOf(s.State), Took: s.RunTime, Message: shorten(s.Failure.Message),
				})
			}
		}
	}
	return description, specs, nil
}

// stateOf counts whatever ended otherwise than by passing or skipping as failed:
// "panicked", "interrupted", "aborted", "timedout". A pending spec counts as skipped.
func stateOf(ginkgo string) State {
	switch ginkgo {
	case string(Passed):
		return Passed
	case string(Skipped), "pending":
		return Skipped
	default:
		return Failed
	}
}

// longestMessage is how many bytes of a failure's message are kept.
const longestMessage = 240

var (
	spaces = regexp.MustCompile(`\s+`)
	// random are the parts of a message that differ from run to run.
	random = regexp.MustCompile(`0x[0-9a-f]{6,}`)
)

// shorten makes one line of a message, without addresses in memory.
func shorten(message string) string {
	message = strings.TrimSpace(spaces.ReplaceAllString(random.ReplaceAllString(message, "0x"), " "))
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + " ..."
	}
	return message
}
