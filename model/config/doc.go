// Package config reads what a model is from its directory: config.json and
// generation_config.json as published on the Hugging Face hub for DeepSeek-V2,
// V3, R1 and models of the same two architectures (Moonlight, Kimi-K2).
//
// It owns the dispatch on the architecture, the defaults of keys a file leaves
// out, and the refusal of everything that would be computed wrongly: another
// family, a quantized layout it cannot read, sizes that contradict each other.
// All faults of a directory come in one error, each with key, value and what
// is legal.
//
// It opens no weight file, reads no tokenizer, downloads nothing, and takes the
// environment as an argument.
package config
