package cli

import (
	"errors"
	"log/slog"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
)

// modelFiles are a model's files as far as they are read before its weights are loaded.
type modelFiles struct {
	dir          string
	config       *modelconfig.Config
	checkpoint   *weights.Checkpoint // headers only
	form         weights.Form        // in which the weights are wanted
	tokenizer    *token.Tokenizer    // nil if there is none
	tokenizerErr error               // why there is none
}

// openModel reads configuration, tokenizer and weight headers. A model without a tokenizer is a model all the same: it takes
// token ids. The weights stay mapped until the process ends: whoever was given them may read them until then.
func (a *app) openModel(name string, log *slog.Logger) (*modelFiles, error) {
	dir, err := modelconfig.Resolve(name, a.getenv)
	if err != nil {
		return nil, err
	}
	m := &modelFiles{dir: dir}
	if m.config, err = modelconfig.Load(dir); err != nil {
		return nil, err
	}
	for _, warning := range m.config.Warnings {
		log.Warn("model configuration", "warning", warning)
	}
	m.tokenizer, m.tokenizerErr = token.Load(dir)
	if m.tokenizerErr != nil && !errors.Is(m.tokenizerErr, token.ErrNoTokenizer) {
		return nil, m.tokenizerErr
	}
	if m.checkpoint, err = weights.Open(dir); err != nil {
		return nil, err
	}
	return m, nil
}
