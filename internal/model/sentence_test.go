package model

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSentenceIsOneAndEndsAfterWord(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""},
		{"No room.", 200, "No room."},
		{"No room.\n\tAsk for 0.25.  Then wait.", 200, "No room; Ask for 0.25; Then wait."},
		{"Sizes, e.g. Standard_D4s_v5, (i.e. Intel...) And more", 200, "Sizes, e.g. Standard_D4s_v5, (i.e. Intel...) And more"},
		{"costs $0.2113/h, which is much", 15, "costs..."},
		{"costs $0.2113/h, which is much", 19, "costs $0.2113/h..."},
		{"größer als alles", 14, "größer als..."},
		{strings.Repeat("x", 30), 10, "xxxxxxx..."},
		{"Azure: " + strings.Repeat("x", 30), 20, "Azure..."},
	} {
		if got := Sentence(c.text, c.most); got != c.want || utf8.RuneCountInString(got) > c.most || Sentence(got, c.most) != got {
			t.Errorf("Sentence(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
	if got := Sentence("A. B", math.MaxInt); got != "A; B" {
		t.Errorf("without an end: %q", got)
	}
}

func TestClauseBeginsInLowerCaseUnlessItIsName(t *testing.T) {
	for sentence, want := range map[string]string{
		"Ask for more quota.": "ask for more quota.", "NodePool a is full": "NodePool a is full", "Nothing: wait.": "Nothing: wait.",
		"Wait": "wait", "": "", "A pod": "a pod", "2 pods wait": "2 pods wait",
	} {
		if got := Clause(sentence); got != want {
			t.Errorf("Clause(%q) = %q, want %q", sentence, got, want)
		}
	}
}
