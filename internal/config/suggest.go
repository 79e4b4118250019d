package config

import "strings"

// hint returns "; did you mean X?" for the setting nearest to key, spelt by spell, or nothing if none is near.
func hint(key string, spell func(string) string) string {
	names := make([]string, 0, len(Keys()))
	for _, k := range Keys() {
		names = append(names, k.Name)
	}
	if near := Nearest(strings.ReplaceAll(strings.ToLower(key), "-", "_"), names); near != "" {
		return "; did you mean " + spell(near) + "?"
	}
	return ""
}

// Nearest returns the name that a typing error may have turned into word: at most a third of its letters changed, the
// first of the nearest. It returns "" if there is none.
func Nearest(word string, names []string) string {
	best, most := "", max(1, len(word)/3)+1
	for _, name := range names {
		if d := distance(word, name); d < most {
			best, most = name, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements that turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
