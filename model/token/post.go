package token

import (
	"encoding/json"
	"fmt"
)

type postJSON struct {
	Type       string            `json:"type"`
	Processors []json.RawMessage `json:"processors"`
	Single     []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
		Sequence *struct{} `json:"Sequence"`
	} `json:"single"`
}

// template returns the tokens that the post-processor puts before and behind one text. ByteLevel adds none.
func (t *Tokenizer) template(data json.RawMessage) (prefix, suffix []int32, err error) {
	if absent(data) {
		return nil, nil, nil
	}
	var post postJSON
	if err := json.Unmarshal(data, &post); err != nil {
		return nil, nil, err
	}
	switch post.Type {
	case "ByteLevel":
		return nil, nil, nil
	case "Sequence":
		for i, member := range post.Processors {
			if typ, err := partType(member); err != nil || typ == "Sequence" {
				return nil, nil, fmt.Errorf("processors[%d]: a Sequence inside a Sequence is not supported", i)
			}
			p, s, err := t.template(member)
			if err != nil {
				return nil, nil, err
			}
			prefix, suffix = append(p, prefix...), append(suffix, s...)
		}
		return prefix, suffix, nil
	case "TemplateProcessing":
		return t.single(post)
	}
	return nil, nil, fmt.Errorf("type %q is not supported (ByteLevel, TemplateProcessing, Sequence are)", post.Type)
}

func (t *Tokenizer) single(post postJSON) (prefix, suffix []int32, err error) {
	texts := 0
	for i, part := range post.Single {
		switch {
		case part.Sequence != nil && part.SpecialToken == nil:
			texts++
		case part.SpecialToken != nil && part.Sequence == nil:
			id, ok := t.byText[part.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("single[%d]: %q is not in the vocabulary", i, part.SpecialToken.ID)
			}
			if texts == 0 {
				prefix = append(prefix, id)
			} else {
				suffix = append(suffix, id)
			}
		default:
			return nil, nil, fmt.Errorf("single[%d]: neither SpecialToken nor Sequence", i)
		}
	}
	if texts != 1 {
		return nil, nil, fmt.Errorf("single: has the text %d times instead of once", texts)
	}
	return prefix, suffix, nil
}
