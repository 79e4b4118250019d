package chat

import (
	"fmt"
	"slices"
	"strings"
)

// maxMessages bounds a conversation: templates that build a text in a loop cost its square.
const maxMessages = 4096

// roles are those of the API; what each means to the model is the template's matter.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// Message is one checked message of a conversation. It is read-only and may be shared.
type Message struct{ fields *object }

// Role returns "system", "developer", "user", "assistant" or "tool".
func (m Message) Role() string {
	if m.fields == nil {
		return ""
	}
	role, _ := m.fields.vals["role"].(string)
	return role
}

// ParseMessages reads the "messages" of a request, a JSON list. Keys it does not know are kept, in order, for the template.
// Null keys count as absent, except an assistant's content; empty tool_calls are dropped; lists of text parts are joined by
// line breaks. Every error is a *BadRequestError.
func ParseMessages(data []byte) ([]Message, error) {
	val, err := decode(data)
	if err != nil {
		return nil, badRequest("messages", "%v", err)
	}
	list, ok := val.([]any)
	if !ok {
		return nil, badRequest("messages", "must be a list of messages, not %s", kindOf(val))
	}
	if err := checkCount(len(list)); err != nil {
		return nil, err
	}
	messages := make([]Message, len(list))
	for i, item := range list {
		if messages[i], err = parseMessage(fmt.Sprintf("messages[%d]", i), item); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

func checkCount(n int) error {
	if n == 0 {
		return badRequest("messages", "must not be empty")
	}
	if n > maxMessages {
		return badRequest("messages", "has %d messages, the limit is %d", n, maxMessages)
	}
	return nil
}

func checkRole(param, role string) error {
	if !slices.Contains(roles, role) {
		return badRequest(param+".role", "unknown role %q (known: %s)", role, strings.Join(roles, ", "))
	}
	return nil
}

func parseMessage(param string, item any) (Message, error) {
	given, ok := item.(*object)
	if !ok {
		return Message{}, badRequest(param, "must be an object, not %s", kindOf(item))
	}
	role, ok := given.vals["role"].(string)
	if !ok {
		return Message{}, badRequest(param+".role", "must be a string, is %s", kindOf(given.vals["role"]))
	}
	if err := checkRole(param, role); err != nil {
		return Message{}, err
	}
	o := given.without(func(key string, val any) bool { return val == nil && key != "content" })
	content, err := parseContent(param+".content", role, given.vals["content"])
	if err != nil {
		return Message{}, err
	}
	o.set("content", content)
	for _, key := range []string{"name", "tool_call_id"} {
		if val, ok := o.vals[key]; ok {
			if _, ok := val.(string); !ok {
				return Message{}, badRequest(param+"."+key, "must be a string, is %s", kindOf(val))
			}
		}
	}
	calls, err := parseToolCalls(param+".tool_calls", o.vals["tool_calls"])
	if err != nil {
		return Message{}, err
	}
	if len(calls) == 0 {
		o = o.without(func(key string, _ any) bool { return key == "tool_calls" })
	} else {
		if role != "assistant" {
			return Message{}, badRequest(param+".tool_calls", "only an assistant's message may have them, this one's role is %s", role)
		}
		o.set("tool_calls", calls)
	}
	return Message{o}, nil
}

// parseContent returns a string, or nil for an assistant's missing content: templates test for null.
func parseContent(param, role string, val any) (any, error) {
	switch val := val.(type) {
	case string:
		return val, nil
	case nil:
		if role == "assistant" {
			return nil, nil
		}
		return nil, badRequest(param, "is missing or null; only an assistant's may be")
	case []any:
		texts := make([]string, len(val))
		for i, part := range val {
			text, err := parsePart(fmt.Sprintf("%s[%d]", param, i), part)
			if err != nil {
				return nil, err
			}
			texts[i] = text
		}
		if len(texts) == 0 {
			return nil, badRequest(param, "is an empty list")
		}
		return strings.Join(texts, "\n"), nil
	}
	return nil, badRequest(param, "must be a string or a list of text parts, not %s", kindOf(val))
}

func parsePart(param string, part any) (string, error) {
	o, ok := part.(*object)
	if !ok {
		return "", badRequest(param, "must be an object, not %s", kindOf(part))
	}
	if typ, ok := o.vals["type"].(string); !ok || typ != "text" {
		return "", badRequest(param+".type", "%s is not supported, this model takes only \"text\"", quoted(o.vals["type"]))
	}
	text, ok := o.vals["text"].(string)
	if !ok {
		return "", badRequest(param+".text", "must be a string, is %s", kindOf(o.vals["text"]))
	}
	return text, nil
}

func quoted(val any) string {
	if s, ok := val.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return kindOf(val)
}
