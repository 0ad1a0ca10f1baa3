package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence makes one sentence of a text, of at most that many characters: on one line, with a
// semicolon in the place of each full stop that another sentence follows. What is too long ends
// after a word, in "...". Precondition: most is at least 3.
func Sentence(text string, most int) string {
	words := strings.Fields(text)
	for i := range max(0, len(words)-1) {
		next, _ := utf8.DecodeRuneInString(words[i+1])
		if ended, stop := strings.CutSuffix(words[i], "."); stop && unicode.IsUpper(next) && !abbreviated(words[i]) {
			words[i] = ended + ";"
		}
	}
	letters := []rune(strings.Join(words, " "))
	if len(letters) <= most {
		return string(letters)
	}
	const dots = "..."
	cut := string(letters[:most-len(dots)])
	if at := strings.LastIndexByte(cut, ' '); at > 0 && letters[most-len(dots)] != ' ' {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:.(") + dots
}

// abbreviated reports whether the full stop of a word ends no sentence.
func abbreviated(word string) bool {
	word = strings.TrimLeft(word, "(")
	return word == "e.g." || word == "i.e." || strings.HasSuffix(word, "..")
}

// Clause is a sentence as a part of another one: it begins in lower case, unless its first word
// is a name.
func Clause(sentence string) string {
	first, rest, _ := strings.Cut(sentence, " ")
	letter, size := utf8.DecodeRuneInString(first)
	if size == 0 || strings.ContainsFunc(first[size:], func(r rune) bool { return !unicode.IsLower(r) }) {
		return sentence
	}
	return strings.TrimSuffix(string(unicode.ToLower(letter))+first[size:]+" "+rest, " ")
}
