package token

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// configJSON is what this package takes from tokenizer_config.json.
type configJSON struct {
	AddBOS  *bool                  `json:"add_bos_token"`
	AddEOS  *bool                  `json:"add_eos_token"`
	BOS     tokenText              `json:"bos_token"`
	EOS     tokenText              `json:"eos_token"`
	Decoder map[string]*addedToken `json:"added_tokens_decoder"`
}

// tokenText is a token's text, given as a string or as an object with "content"; "" for null.
type tokenText string

func (t *tokenText) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(t)) == nil {
		return nil
	}
	var object struct {
		Content *string `json:"content"`
	}
	if err := json.Unmarshal(data, &object); err != nil || object.Content == nil {
		return fmt.Errorf("a token must be a string or an object with a string \"content\"")
	}
	*t = tokenText(*object.Content)
	return nil
}

// configure takes BOS, EOS and the rule for adding them from tokenizer_config.json; data is nil without the file.
// added_tokens_decoder may only repeat what tokenizer.json says.
func (t *Tokenizer) configure(data []byte, post json.RawMessage) error {
	var cfg configJSON
	if data != nil {
		if err := json.Unmarshal(data, &cfg); err != nil {
			return fmt.Errorf("%s: %w", configFile, err)
		}
	}
	var f faults
	t.bos = t.named(&f, "bos_token", string(cfg.BOS))
	eos := t.named(&f, "eos_token", string(cfg.EOS))
	for key, tok := range cfg.Decoder {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || tok == nil || t.Piece(int32(id)) != tok.Content {
			f.addf("added_tokens_decoder[%q]: %s has no such token under that id", key, tokenizerFile)
		}
	}
	slices.Sort(f.list) // map order

	prefix, suffix, err := t.template(post)
	if err != nil {
		return fmt.Errorf("%s: post_processor: %w", tokenizerFile, err)
	}
	t.prefix = affix(&f, "add_bos_token", cfg.AddBOS, t.bos, prefix)
	t.suffix = affix(&f, "add_eos_token", cfg.AddEOS, eos, suffix)
	return f.err(configFile)
}

// named returns the id of a token named in the configuration, −1 if none is.
func (t *Tokenizer) named(f *faults, key, text string) int32 {
	if text == "" {
		return -1
	}
	id, ok := t.byText[text]
	if !ok {
		f.addf("%s: %q is not in the vocabulary", key, text)
		return -1
	}
	return id
}

// affix returns what encoding adds at one end: the token if the configuration says so, what the post-processor adds if the
// configuration does not say.
func affix(f *faults, key string, add *bool, id int32, fromTemplate []int32) []int32 {
	switch {
	case add == nil:
		return fromTemplate
	case !*add:
		return nil
	case id < 0:
		f.addf("%s is true but the token is not named", key)
		return nil
	}
	return []int32{id}
}
