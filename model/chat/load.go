package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/moerack/moerack/internal/readfile"
)

const (
	configFile   = "tokenizer_config.json"
	templateFile = "chat_template.jinja"
	maxFileBytes = 64 << 20
)

// tokenKeys are the tokens of tokenizer_config.json that templates may name.
var tokenKeys = []string{"bos_token", "eos_token", "pad_token", "unk_token"}

// Template is a compiled chat template with the special tokens it may name. Safe for concurrent use.
type Template struct {
	name           string // of the file, for errors
	compiled       *jinja.Template
	knowsDeveloper bool
	tokens         map[string]string
}

// Load reads the chat template of a model directory: chat_template.jinja if it is there, else chat_template of
// tokenizer_config.json, of several the one named "default". Without any the error wraps ErrNoTemplate.
func Load(dir string) (*Template, error) {
	config, err := readConfig(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	tokens, err := config.tokens()
	if err != nil {
		return nil, fmt.Errorf("chat: %s: %w", filepath.Join(dir, configFile), err)
	}
	path := filepath.Join(dir, templateFile)
	data, err := readfile.Regular(path, maxFileBytes)
	if err == nil {
		return compile(path, string(data), tokens)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chat: %w", err)
	}
	path = filepath.Join(dir, configFile)
	source, err := config.template()
	if err != nil {
		return nil, fmt.Errorf("chat: %s: %w", path, err)
	}
	return compile(path, source, tokens)
}

// compile parses the source; the engine's panics on broken sources become errors.
func compile(name, source string, tokens map[string]string) (t *Template, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("chat: %s: template does not compile: %v", name, p)
		}
	}()
	compiled, err := jinja.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("chat: %s: template does not compile: %w", name, err)
	}
	return &Template{name, compiled, strings.Contains(source, "developer"), tokens}, nil
}

type configJSON map[string]json.RawMessage

// readConfig reads tokenizer_config.json; without the file it is empty.
func readConfig(path string) (configJSON, error) {
	data, err := readfile.Regular(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	var config configJSON
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("chat: %s: %w", path, err)
	}
	return config, nil
}

// tokens returns the texts of the special tokens that are set, each a string or an object with "content".
func (c configJSON) tokens() (map[string]string, error) {
	tokens := make(map[string]string)
	for _, key := range tokenKeys {
		raw, ok := c[key]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			var object struct{ Content *string }
			if err := json.Unmarshal(raw, &object); err != nil || object.Content == nil {
				return nil, fmt.Errorf("%s: must be a string or an object with a string \"content\"", key)
			}
			text = *object.Content
		}
		tokens[key] = text
	}
	return tokens, nil
}

func (c configJSON) template() (string, error) {
	raw, ok := c["chat_template"]
	if !ok || string(raw) == "null" {
		return "", ErrNoTemplate
	}
	var source string
	if json.Unmarshal(raw, &source) == nil {
		return source, nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("chat_template: must be a string or a list of {name, template}")
	}
	var names []string
	for _, item := range list {
		if item.Name == "default" {
			return item.Template, nil
		}
		names = append(names, item.Name)
	}
	return "", fmt.Errorf("chat_template: none of the templates (%s) is named default: %w", strings.Join(names, ", "), ErrNoTemplate)
}
