package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/nodeautoprovision/nap/internal/lab/metricsapi"
)

// Scenario is a parsed story.
type Scenario struct {
	Name     string
	Commands []Command
	files    map[string][]byte
}

// Command is one line of a scenario.
type Command struct {
	Line int
	Verb string
	Args []string
}

// String is the command as it was written, up to blanks.
func (c Command) String() string { return strings.Join(append([]string{c.Verb}, c.Args...), " ") }

// Parse reads a scenario and checks that every verb exists and every file that
// it applies is there, so that nothing fails half-way for a typing error.
func Parse(name string, text []byte) (*Scenario, error) {
	archive := txtar.Parse(text)
	s := &Scenario{Name: name, files: map[string][]byte{}}
	for _, f := range archive.Files {
		s.files[f.Name] = f.Data
	}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		words, err := split(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		c := Command{Line: i + 1, Verb: words[0], Args: words[1:]}
		if err := s.check(c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		s.Commands = append(s.Commands, c)
	}
	if len(s.Commands) == 0 {
		return nil, fmt.Errorf("%s: no commands", name)
	}
	return s, nil
}

// Manifests are the files that the scenario applies, in the order in which it first
// does.
func (s *Scenario) Manifests() [][]byte {
	var out [][]byte
	seen := map[string]bool{}
	for _, c := range s.Commands {
		if c.Verb == "apply" && !seen[c.Args[0]] {
			seen[c.Args[0]] = true
			out = append(out, s.files[c.Args[0]])
		}
	}
	return out
}

// arity is the least number of arguments of each verb.
func arity() map[string]int {
	return map[string]int{
		"step": 1, "say": 1, "apply": 1, "delete": 2, "scale": 3, "wait": 2, "fault": 1,
		"kill": 1, "chaos": 1, "expect": 2, "table": 0, "load": 2, "resize": 2,
		"publish-image": 1, "window": 2, "upgrade-kubernetes": 1, "upgrade-nap": 1, "rollback-nap": 0,
	}
}

func (s *Scenario) check(c Command) error {
	least, ok := arity()[c.Verb]
	if !ok {
		verbs := make([]string, 0, len(arity()))
		for v := range arity() {
			verbs = append(verbs, v)
		}
		slices.Sort(verbs)
		return fmt.Errorf("unknown command %q, allowed: %s", c.Verb, strings.Join(verbs, ", "))
	}
	if len(c.Args) < least {
		return fmt.Errorf("%s needs at least %d words, got %d", c.Verb, least, len(c.Args))
	}
	switch c.Verb {
	case "apply":
		if _, ok := s.files[c.Args[0]]; !ok {
			return fmt.Errorf("apply %s: no such file in the scenario", c.Args[0])
		}
	case "scale":
		if _, err := strconv.ParseInt(c.Args[2], 10, 32); err != nil {
			return fmt.Errorf("scale: replicas %q is not a number", c.Args[2])
		}
	case "load", "resize":
		_, err := metricsapi.ParseLoad(strings.Join(c.Args, " "))
		return err
	case "wait":
		_, err := parseWait(c.Args)
		return err
	case "window":
		return checkWindow(c.Args)
	case "upgrade-nap":
		return checkSettings(c.Args)
	}
	return nil
}

// split cuts a line into words; double quotes group, # starts a comment.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quoted := false, false
	flush := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for _, r := range line {
		switch {
		case r == '"':
			quoted, inWord = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == '#' && !inWord:
			flush()
			return words, nil
		case r == ' ' || r == '\t' || r == '\r':
			flush()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	flush()
	return words, nil
}

// wait is a parsed wait command: what to look at, which of them, which numbers
// to reach, for how long they must stay so, and for how long to hope.
type wait struct {
	what     string
	selector string
	filters  map[string]string
	want     map[string]int
	hold     time.Duration
	within   time.Duration
}

// wants lists the numbers that can be waited for, by what is looked at.
func wants() map[string][]string {
	return map[string][]string{
		"pods": {"running", "pending", "resizing"}, "nodes": {"ready"}, "machines": {"count", "accepted"}, "claims": {"count"},
		"moves": {"underway"}, "boot-failures": {"told"},
	}
}

func parseWait(args []string) (wait, error) {
	w := wait{what: args[0], filters: map[string]string{}, want: map[string]int{}}
	allowed, ok := wants()[w.what]
	if !ok {
		return w, fmt.Errorf("wait %s: allowed are pods, nodes, machines, claims, moves, boot-failures", w.what)
	}
	for i := 1; i < len(args); i++ {
		if (args[i] == "within" || args[i] == "for") && i+1 < len(args) {
			d, err := time.ParseDuration(args[i+1])
			if err != nil {
				return w, fmt.Errorf("wait: %q is not a duration", args[i+1])
			}
			if args[i] == "for" {
				w.hold = d
			} else {
				w.within = d
			}
			i++
			continue
		}
		if err := w.condition(args[i], allowed); err != nil {
			return w, err
		}
	}
	if _, accepted := w.want["accepted"]; accepted && len(w.filters)+len(w.want) > 1 {
		return w, fmt.Errorf("wait machines: accepted=N counts all of them, running or not, and goes with nothing else")
	}
	if len(w.want) == 0 || w.within == 0 {
		return w, fmt.Errorf("wait %s: needs one of %s=N, and within DURATION", w.what, strings.Join(allowed, "=N, "))
	}
	return w, nil
}

// condition reads a word that says what to wait for: a number that is wanted, a filter
// of machines, or a selector.
func (w *wait) condition(word string, allowed []string) error {
	key, value, found := strings.Cut(word, "=")
	switch {
	case found && slices.Contains(allowed, key):
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("wait: %s is not a number in %q", value, word)
		}
		w.want[key] = n
	case w.what == "machines" && found:
		if !slices.Contains([]string{"size", "zone", "priority", "trouble"}, key) {
			return fmt.Errorf("wait machines: %q, allowed are size, zone, priority, trouble, count, accepted", key)
		}
		w.filters[key] = value
	case w.what == "nodes" && slices.Contains([]string{"image", "kubelet"}, key):
		w.filters[key] = value
	case w.selector == "" && w.what != "machines":
		w.selector = word
	default:
		return fmt.Errorf("wait %s: do not understand %q", w.what, word)
	}
	return nil
}
