package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
)

// longestFile bounds a settings file, in bytes.
const longestFile = 1 << 20

// document reads a YAML file of key: value lines. A file of several documents is refused: only one of them could count.
func document(path string) (map[string]any, error) {
	data, err := ReadFile(path, longestFile)
	if err == nil && several(string(data)) {
		err = errors.New("holds several YAML documents: remove the line ---")
	}
	var values map[string]any
	if err == nil {
		values, err = yaml.Parser().Unmarshal(data)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %s: want a YAML file of key: value lines: %w", path, err)
	}
	return values, nil
}

// several reports whether a YAML text has more than its first document. Lines that begin with --- or ... part documents wherever
// they are: YAML 1.2.2, section 9.1.2, forbids them in all values.
func several(text string) bool {
	begun, ended := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		first, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		switch {
		case first == "---":
			begun, ended = true, begun
		case first == "...":
			ended, rest = begun, ""
		case strings.HasPrefix(line, "%") && begun == ended: // a directive, between documents
			rest = ""
		default:
			rest = line
		}
		if rest = strings.TrimLeft(rest, " \t"); rest != "" && rest[0] != '#' {
			if ended {
				return true
			}
			begun = true
		}
	}
	return false
}
