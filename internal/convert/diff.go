package convert

import "strings"

// Diff lists the lines that differ between two texts: those of the first with a minus,
// those of the second with a plus, each run with the lines around it. It is empty where
// they are the same.
func Diff(before, after string) string {
	if before == after {
		return ""
	}
	a, b := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	d := &lineDiff{changed: map[int]bool{}}
	d.keep(a[:begin])
	d.compare(a[begin:len(a)-end], b[begin:len(b)-end])
	d.keep(a[len(a)-end:])
	return around(d.lines, d.changed)
}

// mostCells bounds the table in which lines are compared, a few megabytes: where the texts between
// what both begin and end with are longer, all of it counts as changed.
const mostCells = 1 << 20

// lineDiff are the lines of a difference, and which of them one text alone has.
type lineDiff struct {
	lines   []string
	changed map[int]bool
}

// keep adds lines that both texts have.
func (d *lineDiff) keep(lines []string) {
	for _, line := range lines {
		d.lines = append(d.lines, "  "+line)
	}
}

// add adds lines that one text has, with their sign.
func (d *lineDiff) add(sign string, lines ...string) {
	for _, line := range lines {
		d.changed[len(d.lines)] = true
		d.lines = append(d.lines, sign+line)
	}
}

// compare adds the lines of two texts, with as many common ones as there are.
func (d *lineDiff) compare(a, b []string) {
	if (len(a)+1)*(len(b)+1) > mostCells {
		d.add("- ", a...)
		d.add("+ ", b...)
		return
	}
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
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			d.keep(a[i : i+1])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			d.add("- ", a[i])
			i++
		default:
			d.add("+ ", b[j])
			j++
		}
	}
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
