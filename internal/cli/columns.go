package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// wrap breaks a text into lines of at most so many columns; the second and all that follow
// are indented. Names and commands are not broken, however long they are: they are there to
// be copied.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, phrase := range phrases(text) {
		switch {
		case line == "":
			line = phrase
		case len([]rune(line))+1+len([]rune(phrase)) > columns:
			lines = append(lines, line)
			line = "  " + phrase
		default:
			line += " " + phrase
		}
	}
	return append(lines, line)
}

// wrapIndented breaks a text into lines of a screen; lines after the first stand
// two columns further in than it.
func wrapIndented(text string) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	lines := wrap(text, screenColumns-len(indent))
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}

// columnsOf is how wide a text is, its widest line.
func columnsOf(text string) int {
	widest := 0
	for line := range strings.Lines(text) {
		widest = max(widest, len([]rune(strings.TrimRight(line, "\n"))))
	}
	return widest
}

// prose is a sentence for people as lines that fit the screen, indented as it is.
func prose(format string, args ...any) string {
	return strings.Join(wrapIndented(fmt.Sprintf(format, args...)), "\n") + "\n"
}

// sayNote says on standard error what the reader should know beside an answer. Errors are
// not broken into lines: each is one, so that programs can count and search them.
func sayNote(w io.Writer, format string, args ...any) {
	fmt.Fprint(w, prose("note: "+format, args...))
}

// ownCommand is a command of nap within a sentence.
var ownCommand = regexp.MustCompile(`(?:kubectl )?\bnap ([a-z-]+)`)

// offeredIn is a text with nap's commands in it as they have to be typed here.
func offeredIn(s *command.Streams, text string) string {
	if s.Program == "" {
		return text
	}
	return ownCommand.ReplaceAllStringFunc(text, func(found string) string {
		if word, is := strings.CutPrefix(found, "nap "); !is || !strings.Contains(offeredCommands, " "+word+" ") {
			return found
		}
		return s.Offered(found)
	})
}

// offered is offeredIn for lines: those that become too long for the screen are broken.
func offered(s *command.Streams, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		told := offeredIn(s, line)
		if told != line && columnsOf(line) <= screenColumns && columnsOf(told) > screenColumns {
			told = prose("%s", strings.TrimRight(told, "\n"))
		}
		out.WriteString(told)
	}
	return out.String()
}

// phrases are the words of a text; those of a command are one.
func phrases(text string) []string {
	words := strings.Fields(text)
	var out []string
	for i := 0; i < len(words); {
		n := 1
		if startsCommand(words[i:]) {
			n = commandLength(words[i:], i > 0 && strings.HasSuffix(words[i-1], ":"))
		}
		out = append(out, strings.Join(words[i:i+n], " "))
		i += n
	}
	return out
}

// startsCommand reports whether words begin with a command of a program that answers offer.
func startsCommand(words []string) bool {
	if len(words) < 2 {
		return false
	}
	switch strings.TrimLeft(words[0], "(`") {
	case "kubectl", "az", "helm", "curl":
		return true
	case "nap":
		return strings.Contains(offeredCommands, " "+strings.TrimRight(words[1], ",;:.)`")+" ")
	}
	return false
}

// offeredCommands are the commands of nap, which are no words of a sentence there.
const offeredCommands = " catalog completion controller convert diff disable doctor enable explain freeze get images " +
	"lab ledger lint machine plan prices protect retire retry savings shadow status thaw version what-if "

// commandLength is how many of the words are a command: all of the clause where it is a
// clause of its own that is no sentence by its length, else those which look like flags, values or names.
func commandLength(words []string, clause bool) int {
	ends := func(word string) bool { return strings.ContainsAny(word[len(word)-1:], ",;:.)`") }
	if clause {
		n := 1
		for n < len(words) && !ends(words[n-1]) {
			n++
		}
		if words[0] != "nap" || len(strings.Join(words[:n], " ")) <= screenColumns*3/4 {
			return n
		}
	}
	n := 2
	for n < len(words) && !ends(words[n-1]) && (n == 2 && words[0] != "nap" || strings.HasPrefix(words[n], "-") ||
		strings.ToLower(words[n]) != words[n] || strings.ContainsAny(words[n], "/=_|<>0123456789")) {
		n++
	}
	return n
}

// breakCommand breaks a command for a shell into lines that fit a screen behind
// commandIndent, where that is possible: between words, and within quotes, which hold JSON, after a comma, a colon or a
// bracket.
func breakCommand(command string) []string {
	const columns = screenColumns - len(commandIndent)
	var lines []string
	line := ""
	for _, piece := range commandPieces(command) {
		if line != "" && len(line)+len(strings.TrimRight(piece, " "))+len(` \\`) > columns {
			lines = append(lines, line)
			line = "  "
		}
		line += piece
	}
	return finishCommand(append(lines, line))
}

// commandPieces are the parts of a command in order, before each of which it may be broken.
func commandPieces(command string) []string {
	var out []string
	start, quoted, text := 0, false, false
	cut := func(end int) {
		if end > start {
			out = append(out, command[start:end])
			start = end
		}
	}
	for i, c := range command {
		switch {
		case c == '\'':
			quoted, text = !quoted, false
		case quoted && c == '"':
			text = !text
		case quoted && !text && strings.ContainsRune(",:{[", c), !quoted && c == ' ':
			cut(i + 1)
		}
	}
	cut(len(command))
	return out
}

// finishCommand ends each line but the last that ends outside of quotes in a backslash.
func finishCommand(lines []string) []string {
	quotes := 0
	for i := range lines {
		quotes += strings.Count(lines[i], "'")
		if i < len(lines)-1 && quotes%2 == 0 {
			lines[i] = strings.TrimRight(lines[i], " ") + ` \`
		}
	}
	return lines
}
