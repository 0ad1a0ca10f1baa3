package convert

import "strings"

// Diff lists the lines that differ between two texts: those of the first with a minus,
// those of the second with a plus, each run with the lines around it. It is empty where
// they are the same.
func Diff(before, after string) string {
	a, b := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	longest := make([][]int, len(a)+1) // of a common subsequence of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var lines []string
	changed := map[int]bool{}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, "  "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			changed[len(lines)] = true
			lines = append(lines, "- "+a[i])
			i++
		default:
			changed[len(lines)] = true
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	return around(lines, changed)
}

// around keeps changed lines and the two on either side of each.
func around(lines []string, changed map[int]bool) string {
	const context = 2
	var out strings.Builder
	skipped := false
	for i, line := range lines {
		near := false
		for d := -context; d <= context; d++ {
			near = near || changed[i+d]
		}
		if !near {
			skipped = true
			continue
		}
		if skipped && out.Len() > 0 {
			out.WriteString("  ...\n")
		}
		skipped = false
		out.WriteString(line + "\n")
	}
	return out.String()
}
