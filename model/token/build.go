package token

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxID bounds the tables by id; real vocabularies have under 300,000 tokens.
const maxID = 1<<21 - 1

// parse builds a tokenizer from the two files; config is nil if there is none. Errors name the file and the item.
func parse(data, config []byte) (*Tokenizer, error) {
	var js tokenizerJSON
	if err := json.Unmarshal(data, &js); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			err = fmt.Errorf("ends inside the JSON after %d bytes (download cut?)", len(data))
		}
		return nil, fmt.Errorf("%s: %w", tokenizerFile, err)
	}
	var f faults
	t := &Tokenizer{cache: newWordCache()}
	t.readParts(&f, &js)
	if js.Model == nil {
		f.addf("model is missing")
		return nil, f.err(tokenizerFile)
	}
	js.Model.checkKind(&f)
	if err := f.err(tokenizerFile); err != nil {
		return nil, err
	}
	t.readVocabulary(&f, js.Model, js.AddedTokens)
	if err := f.err(tokenizerFile); err != nil {
		return nil, err
	}
	if err := t.configure(config, js.PostProcessor); err != nil {
		return nil, err
	}
	return t, nil
}

// readParts reads normalizer, pre-tokenizer and decoder.
func (t *Tokenizer) readParts(f *faults, js *tokenizerJSON) {
	var err error
	if t.normalize, err = parseNormalizer(js.Normalizer); err != nil {
		f.addf("normalizer: %v", err)
	}
	if absent(js.PreTokenizer) {
		f.addf("pre_tokenizer is missing; only byte-level BPE is supported")
	} else if t.words, err = parsePreTokenizer(js.PreTokenizer); err != nil {
		f.addf("pre_tokenizer: %v", err)
	}
	if absent(js.Decoder) {
		f.addf("decoder is missing (ByteLevel is supported)")
	} else if typ, err := partType(js.Decoder); err != nil || typ != "ByteLevel" {
		f.addf("decoder: type %q is not supported (ByteLevel is)", typ)
	}
}

// checkKind refuses kinds of BPE that are not plain byte-level ones.
func (m *modelJSON) checkKind(f *faults) {
	if m.Type != "BPE" && !(m.Type == "" && m.Merges != nil) { // older files leave the type out
		f.addf("model.type %q is not supported (BPE is)", m.Type)
	}
	if m.Dropout != nil && *m.Dropout != 0 {
		f.addf("model.dropout %v is not supported (null is)", *m.Dropout)
	}
	if m.ContinuingSubwordPrefix != "" {
		f.addf("model.continuing_subword_prefix %q is not supported (null is)", m.ContinuingSubwordPrefix)
	}
	if m.EndOfWordSuffix != "" {
		f.addf("model.end_of_word_suffix %q is not supported (null is)", m.EndOfWordSuffix)
	}
	if m.ByteFallback {
		f.addf("model.byte_fallback true is not supported (false is)")
	}
}

// readVocabulary fills the tables by id, the merges and the added tokens.
func (t *Tokenizer) readVocabulary(f *faults, m *modelJSON, added []addedToken) {
	highest := int64(-1)
	check := func(text string, id int64, where string) bool {
		if id < 0 || id > maxID {
			f.addf("%s: %q has id %d, outside 0 to %d", where, text, id, maxID)
			return false
		}
		highest = max(highest, id)
		return true
	}
	for text, id := range m.Vocab {
		check(text, id, "model.vocab")
	}
	for i, tok := range added {
		check(tok.Content, tok.ID, fmt.Sprintf("added_tokens[%d]", i))
	}
	if len(f.list) > 0 {
		return
	}
	t.pieces = make([]string, highest+1)
	t.raw = make([][]byte, highest+1)
	t.special = make([]bool, highest+1)
	t.byText = make(map[string]int32, len(m.Vocab)+len(added))
	for text, id := range m.Vocab {
		t.place(f, text, id, "model.vocab")
	}
	t.readMerges(f, m)
	t.readAdded(f, m, added)
}

// place puts one token into the tables.
func (t *Tokenizer) place(f *faults, text string, id int64, where string) {
	if text == "" {
		f.addf("%s: id %d has an empty text", where, id)
		return
	}
	if old := t.pieces[id]; old != "" && old != text {
		f.addf("%s: id %d is both %q and %q", where, id, min(old, text), max(old, text))
		return
	}
	t.pieces[id] = text
	t.raw[id] = pieceBytes(text)
	t.byText[text] = int32(id)
}

func (t *Tokenizer) readMerges(f *faults, m *modelJSON) {
	t.bpe.ignoreMerges = m.IgnoreMerges
	t.bpe.merges = make(map[pair]merge, len(m.Merges))
	for b, r := range byteChars {
		id, ok := t.byText[string(r)]
		if !ok {
			f.addf("model.vocab: has no token for byte 0x%02x (%q)", b, r)
		}
		t.bpe.byteIDs[b] = id
	}
	if m.IgnoreMerges {
		t.bpe.words = make(map[string]int32, len(m.Vocab))
		for _, id := range m.Vocab {
			t.bpe.words[string(t.raw[id])] = int32(id)
		}
	}
	for rank, lr := range m.Merges {
		left, okL := t.byText[lr[0]]
		right, okR := t.byText[lr[1]]
		id, ok := t.byText[lr[0]+lr[1]]
		switch {
		case !okL:
			f.addf("model.merges[%d]: %q is not in the vocabulary", rank, lr[0])
		case !okR:
			f.addf("model.merges[%d]: %q is not in the vocabulary", rank, lr[1])
		case !ok:
			f.addf("model.merges[%d]: its result %q is not in the vocabulary", rank, lr[0]+lr[1])
		default:
			if old, twice := t.bpe.merges[pair{left, right}]; twice {
				f.addf("model.merges[%d]: %q %q was already merge %d", rank, lr[0], lr[1], old.rank)
			}
			t.bpe.merges[pair{left, right}] = merge{int32(rank), id}
		}
	}
}

// readAdded sorts the added tokens into their two passes.
func (t *Tokenizer) readAdded(f *faults, m *modelJSON, added []addedToken) {
	t.verbatim, t.normalized = newAddedMatcher(), newAddedMatcher()
	for i := range added {
		tok := &added[i]
		where := fmt.Sprintf("added_tokens[%d]", i)
		if id, ok := t.byText[tok.Content]; ok && int64(id) != tok.ID {
			f.addf("%s: %q has id %d, but also id %d", where, tok.Content, tok.ID, id)
			continue
		}
		t.place(f, tok.Content, tok.ID, where)
		t.special[tok.ID] = t.special[tok.ID] || tok.Special
		if !tok.Normalized {
			t.verbatim.add(tok.Content, tok)
		} else if t.normalize != nil {
			t.normalized.add(t.normalize(tok.Content), tok)
		} else {
			t.normalized.add(tok.Content, tok)
		}
	}
}
