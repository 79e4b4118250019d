package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moerack/moerack/internal/readfile"
)

const (
	tokenizerFile = "tokenizer.json"
	configFile    = "tokenizer_config.json"

	// maxFileBytes bounds what is read into memory; DeepSeek-V3's tokenizer.json has 8 MB.
	maxFileBytes = 256 << 20
)

// ErrNoTokenizer says that a model directory has no tokenizer.json. The model still runs on token ids; text needs one.
var ErrNoTokenizer = errors.New("no tokenizer.json; prompts must be token ids")

// Load reads the tokenizer of a model directory. Without tokenizer.json the error wraps ErrNoTokenizer and, where the
// directory has a vocabulary of another kind, says what to do. All faults of a file are told at once.
func Load(dir string) (*Tokenizer, error) {
	data, err := readfile.Regular(filepath.Join(dir, tokenizerFile), maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	config, err := readfile.Regular(filepath.Join(dir, configFile), maxFileBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := parse(data, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", dir, err)
	}
	return t, nil
}

// missing explains why dir has no tokenizer.
func missing(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	for _, pattern := range []string{"tiktoken.model", "*.tiktoken"} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return fmt.Errorf("tokenizer: %s: has only the rank file %s, whose word splitting lives in Python code; convert it to tokenizer.json (Hugging Face transformers can): %w",
				dir, filepath.Base(found[0]), ErrNoTokenizer)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.model")); err == nil {
		return fmt.Errorf("tokenizer: %s: has only the SentencePiece file tokenizer.model, which is not supported: %w", dir, ErrNoTokenizer)
	}
	return fmt.Errorf("tokenizer: %s: %w", dir, ErrNoTokenizer)
}
