package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

var (
	newSentence = regexp.MustCompile(`[^.]\. +["(]?\p{Lu}`)
	longWord    = regexp.MustCompile(`worst[^\s,;:/"'()\[\]=]*`)
	number      = regexp.MustCompile(`\d+(?:[.:T-]\d+)*`)
	name        = regexp.MustCompile(`[\w./-]*[A-Za-z_/][\w./-]*`)
)

// Every event that nap sends is, with the worst values, one sentence of at most 200 characters
// that begins with its verdict, has no secret, no word or number that was cut, and no number that
// was not given.
func TestEventsOfWorstValuesAreOneSentence(t *testing.T) {
	for function, s := range worstEvents() {
		t.Run(function, func(t *testing.T) {
			if len(s.events) == 0 {
				t.Error("nothing is sent")
			}
			for i := range s.events {
				check(t, &s.events[i], s)
			}
		})
	}
}

func check(t *testing.T, e *events.Event, s sent) {
	t.Helper()
	got := e.Message
	if n := utf8.RuneCountInString(got); n > event.Most || n == 0 || !utf8.ValidString(got) || got != event.Line(got) {
		t.Errorf("%d characters: %q", n, got)
	}
	if !strings.HasPrefix(got, s.verdict) || strings.Contains(got, "swordfish") || strings.ContainsAny(got, "\n\t") || newSentence.MatchString(got) {
		t.Errorf("%q, which is to begin with %q and to be one sentence without secrets", got, s.verdict)
	}
	for _, part := range s.keeps {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	for _, word := range longWord.FindAllString(strings.TrimSuffix(got, "..."), -1) {
		if !strings.HasSuffix(word, "end") && !strings.HasSuffix(word, "0002") && word != "worst_ND96isrf_MI300X_v5_end" {
			t.Errorf("%q has the word %q, which was cut", got, word)
		}
	}
	given := number.FindAllString(s.numbers, -1)
	for _, n := range given {
		if strings.Contains(n, ":") { // a time
			got = strings.ReplaceAll(got, n+"Z", "")
		}
	}
	for _, n := range number.FindAllString(name.ReplaceAllString(got, ""), -1) {
		if !slices.Contains(given, n) {
			t.Errorf("%q has the number %s, given were %q", got, n, given)
		}
	}
}

// The functions that make events are those that the test above asks, found in the source.
func TestEveryFunctionThatMakesEventsIsTested(t *testing.T) {
	tested := map[string]bool{}
	for function := range worstEvents() {
		tested[strings.SplitN(function, "/", 2)[0]] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !f.Name.IsExported() || !makesEvents(f) {
				continue
			}
			if !tested[f.Name.Name] {
				t.Errorf("%s makes events and is not in worstEvents", f.Name.Name)
			}
			delete(tested, f.Name.Name)
		}
	}
	for function := range tested {
		t.Errorf("worstEvents asks %s, which makes no events", function)
	}
}

// makesEvents reports whether a function returns an event, or several.
func makesEvents(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result := f.Type.Results.List[0].Type
	if list, several := result.(*ast.ArrayType); several {
		result = list.Elt
	}
	selector, is := result.(*ast.SelectorExpr)
	return is && selector.Sel.Name == "Event"
}

// What is sent is listed, with the kinds of its objects and its type, and nothing else is.
func TestReasonsAreThoseOfTheEventsThatAreSent(t *testing.T) {
	for _, add := range []func() error{
		func() error { return v1alpha1.AddToScheme(scheme.Scheme) }, func() error { return v1beta1.AddToScheme(scheme.Scheme) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	type said struct{ kinds, types map[string]bool }
	sent := map[string]said{}
	for _, s := range worstEvents() {
		for i := range s.events {
			e := &s.events[i]
			var kind string
			switch e.InvolvedObject.(type) {
			case *karpv1.NodeClaim:
				kind = "NodeClaim"
			case *karpv1.NodePool:
				kind = "NodePool"
			default:
				gvk, err := apiutil.GVKForObject(e.InvolvedObject, scheme.Scheme)
				if err != nil {
					t.Fatal(err)
				}
				kind = gvk.Kind
			}
			if sent[e.Reason].kinds == nil {
				sent[e.Reason] = said{map[string]bool{}, map[string]bool{}}
			}
			sent[e.Reason].kinds[kind], sent[e.Reason].types[e.Type] = true, true
		}
	}
	before := ""
	for _, r := range event.Reasons() {
		got := sent[r.Name]
		if !maps.Equal(got.kinds, set(r.On)) || !maps.Equal(got.types, set([]string{r.Type})) || r.Says == "" || r.Do == "" {
			t.Errorf("%+v, and it is sent on %v as %v", r, got.kinds, got.types)
		}
		if r.Name <= before {
			t.Errorf("%s after %s", r.Name, before)
		}
		before = r.Name
		delete(sent, r.Name)
		if named, ok := event.Named(strings.ToLower(r.Name)); !ok || named.Name != r.Name {
			t.Errorf("%s is not found by its name", r.Name)
		}
	}
	for reason := range sent {
		t.Errorf("%s is sent, and Reasons does not have it", reason)
	}
	if _, known := event.Named("Nothing"); known {
		t.Error("a reason that is not sent is known")
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// Every code of package poollint, found in its source, is a reason of Warnings on NodePools, and its
// event is among those that are tried.
func TestEveryFindingIsAReason(t *testing.T) {
	text, err := os.ReadFile("../../poollint/lint.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t\w+\s+Code = "(\w+)"$`).FindAllStringSubmatch(string(text), -1)
	if len(codes) < 11 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	tried := map[string]bool{}
	unwise := worstEvents()["Unwise"].events
	for i := range unwise {
		tried[unwise[i].Reason] = true
	}
	for _, m := range codes {
		reason := event.ReasonOf(&poollint.Finding{Code: poollint.Code(m[1])})
		told, known := event.Named(reason)
		if !known || !slices.Contains(told.On, "NodePool") || told.Type != "Warning" || !tried[reason] {
			t.Errorf("%s is %+v (known: %t, tried: %t), want a Warning on NodePools", m[1], told, known, tried[reason])
		}
	}
}
