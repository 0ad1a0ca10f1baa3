package model

import "strings"

// Alike is the one among known words of which a word is a misspelling, in any case: one or,
// of long words, two letters are added, left out, changed, or swapped with the next. It is
// empty where no known word is so near, the first of them where several are equally near.
func Alike(word string, known []string) string {
	best, least := "", misspelled(word)+1
	word = strings.ToLower(word)
	for _, k := range known {
		candidate := strings.ToLower(k)
		if longer := len(candidate) - len(word); longer >= least || -longer >= least {
			continue // so many letters at least must be added or left out
		}
		if d := editDistance(word, candidate); d < least {
			best, least = k, d
		}
	}
	return best
}

// misspelled is how many letters may be wrong in a word, so that it is still told from others.
func misspelled(word string) int {
	switch n := len(word); {
	case n < 3:
		return 0
	case n < 8:
		return 1
	default:
		return 2
	}
}

// editDistance is how many letters must be added, left out, changed or swapped with their
// neighbour to make one word of another (optimal string alignment).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
