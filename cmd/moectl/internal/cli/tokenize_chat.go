package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/model/chat"
	"github.com/moerack/moerack/model/token"
)

// encodeChat renders a conversation and encodes it as it is.
func encodeChat(t *token.Tokenizer, dir, path string) (tokens, error) {
	data, err := config.ReadFile(path, maxLine)
	if err != nil {
		return tokens{}, usagef("--chat: %s: %w", path, err)
	}
	messages, options, err := parseConversation(data)
	if err != nil {
		return tokens{}, usagef("--chat: %s: %w", path, err)
	}
	template, err := chat.Load(dir)
	if err != nil {
		return tokens{}, err
	}
	text, err := template.Render(messages, options)
	if err != nil {
		return tokens{}, usagef("--chat: %s: %w", path, err)
	}
	return tokens{IDs: t.Encode(text, false), Text: text}, nil
}

// parseConversation reads a list of messages, or an object with them and what the API lets a request say besides.
func parseConversation(data []byte) ([]chat.Message, chat.Options, error) {
	conversation := struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Generate *bool           `json:"add_generation_prompt"`
	}{Messages: data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		conversation.Messages = nil
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&conversation); err != nil {
			return nil, chat.Options{}, err
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, chat.Options{}, errors.New("something follows the JSON object")
		}
	}
	messages, err := chat.ParseMessages(conversation.Messages)
	options := chat.Options{AddGenerationPrompt: or(conversation.Generate, true)}
	if len(conversation.Tools) > 0 {
		var toolsErr error
		options.Tools, toolsErr = chat.ParseTools(conversation.Tools)
		err = errors.Join(err, toolsErr)
	}
	return messages, options, err
}
