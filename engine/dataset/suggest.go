package dataset

import "fmt"

// suggest is `; did you mean "x"?` for the known word nearest to word, or "".
func suggest(word string, known []string) string {
	best, bestDist := "", 2+min(len(word)/4, 2)
	for _, k := range known {
		if d := editDistance(word, k); d < bestDist {
			best, bestDist = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is the least number of insertions, deletions and replacements of
// bytes that turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diag
			if a[i-1] != b[j-1] {
				change++
			}
			diag = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
