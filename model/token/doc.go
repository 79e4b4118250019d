// Package token turns text into token ids and back with the byte-level BPE tokenizer of a model directory
// (tokenizer.json, and tokenizer_config.json for BOS and EOS).
//
// It owns the vocabulary, the merges, the added tokens, the pre-tokenizer, and the incremental detokenizer that never
// cuts a character. It covers what DeepSeek-family files use; a file that asks for anything else is refused by name, never
// read by guess. It does not know models, chat templates or stop strings, and it downloads nothing.
//
// Encoding goes: added tokens are cut out, the rest is normalised, split into words by the pre-tokenizer, and each word is
// merged on its own. The three regular expressions of DeepSeek-V3's pre-tokenizer have hand-written scanners, found by their
// exact text; every other expression runs in a backtracking regex engine. The six-step pre-tokenizer of DeepSeek-V2 goes that
// way: it is compared with the Hugging Face reference on hand-made files, not with the published one.
package token
