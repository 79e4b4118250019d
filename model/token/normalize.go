package token

import (
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// parseNormalizer returns the normalisation of text between added tokens; nil means none.
func parseNormalizer(data json.RawMessage) (func(string) string, error) {
	return normalizerAt(data, 0)
}

func normalizerAt(data json.RawMessage, depth int) (func(string) string, error) {
	if absent(data) {
		return nil, nil
	}
	var js struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := json.Unmarshal(data, &js); err != nil {
		return nil, err
	}
	switch js.Type {
	case "NFC":
		return norm.NFC.String, nil
	case "Sequence":
		if depth > 8 {
			return nil, fmt.Errorf("sequences nested more than 8 deep")
		}
		var all func(string) string
		for _, member := range js.Normalizers {
			f, err := normalizerAt(member, depth+1)
			if err != nil {
				return nil, err
			}
			if f != nil {
				all = f // NFC twice is NFC
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("type %q is not supported (NFC and Sequence are)", js.Type)
}
