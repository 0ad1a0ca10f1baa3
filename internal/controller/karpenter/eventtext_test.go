package karpenter

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// Whatever a controller says in an event, it is one line of at most 200 characters that begins as
// it was said, and has no secrets.
func TestEventsAreOneShortLine(t *testing.T) {
	const verdict = "QuotaExceeded: standardDSv5Family 98 of 100 vCPUs"
	for name, said := range map[string]string{
		"short":         verdict,
		"lines":         verdict + "\n\twhat Azure said:\n",
		"many words":    verdict + strings.Repeat(", eastus-1", 100),
		"one long word": verdict + " " + strings.Repeat("/subscriptions", 50),
		"secrets":       verdict + `; invalid proxy address "http://me:swordfish@proxy:31z"; {"password":"a swordfish"}`,
		"other letters": verdict + " " + strings.Repeat("größer ", 100),
	} {
		t.Run(name, func(t *testing.T) {
			fake := record.NewFakeRecorder(3)
			s := shortEvents{fake}
			s.Event(&corev1.Pod{}, "Warning", "Reason", said)
			s.Eventf(&corev1.Pod{}, "Warning", "Reason", "%s", said)
			s.AnnotatedEventf(&corev1.Pod{}, map[string]string{"a": "b"}, "Warning", "Reason", "%s", said)
			for range 3 {
				got := strings.TrimPrefix(<-fake.Events, "Warning Reason ")
				got, _, _ = strings.Cut(got, "map[")
				got = strings.TrimSpace(got)
				n := utf8.RuneCountInString(got)
				if n > event.Most || !strings.HasPrefix(got, verdict) || strings.Contains(got, "\n") || strings.Contains(got, "swordfish") || !utf8.ValidString(got) {
					t.Errorf("%d characters: %q", n, got)
				}
			}
		})
	}
}

// Nothing records events beside recorderOf, and so none is longer.
func TestEventsAreRecordedInOnePlace(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != "eventtext.go" && !strings.HasSuffix(file, "_test.go") &&
			regexp.MustCompile(`GetEventRecorder(For)?\(`).Match(text) {
			t.Errorf("%s records events by itself: let it take the recorder of the assembly", file)
		}
	}
}
