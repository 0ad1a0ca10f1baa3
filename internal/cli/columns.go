package cli

import "strings"

// wrapIndented breaks a text into lines of a screen; lines after the first stand
// two columns further in than it.
func wrapIndented(text string) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	lines := wrap(text, screenColumns-len(indent))
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return splitLong(lines, screenColumns)
}

// splitLong cuts lines that even so are longer than some columns, such as those of one word.
func splitLong(lines []string, columns int) []string {
	var out []string
	for _, line := range lines {
		for runes := []rune(line); len(runes) > columns; runes = []rune(line) {
			out = append(out, string(runes[:columns]))
			line = "  " + string(runes[columns:])
		}
		out = append(out, line)
	}
	return out
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
