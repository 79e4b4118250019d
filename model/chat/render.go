package chat

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ardanlabs/jinja"
)

// maxOutputBytes bounds a rendered prompt.
const maxOutputBytes = 4 << 20

// Options are what a request may say besides its messages. The zero value is right.
type Options struct {
	// AddGenerationPrompt asks for the opening of the assistant's turn at the end.
	AddGenerationPrompt bool
	// Tools are offered to the model; a template may ignore them.
	Tools []Tool
}

// Render returns the prompt for a conversation. Every error is a *BadRequestError: also where the template itself refuses the
// messages or fails on them, since sending the same again cannot help.
//
// Tool arguments are given as JSON text; if that fails, once more as objects, which other model families want. A developer
// message is a system message for a template that does not know the role.
func (t *Template) Render(messages []Message, opts Options) (string, error) {
	if err := checkCount(len(messages)); err != nil {
		return "", err
	}
	messages = slices.Clone(messages)
	for i, m := range messages {
		if err := checkRole(fmt.Sprintf("messages[%d]", i), m.Role()); err != nil {
			return "", err
		}
		if m.Role() == "developer" && !t.knowsDeveloper {
			o := m.fields.clone()
			o.set("role", "system")
			messages[i] = Message{o}
		}
	}
	text, err := t.renderOnce(messages, opts)
	if err == nil {
		return text, nil
	}
	parsed := false
	for i, m := range messages {
		var changed bool
		messages[i], changed = m.withParsedArguments()
		parsed = parsed || changed
	}
	if parsed {
		if text, again := t.renderOnce(messages, opts); again == nil {
			return text, nil
		}
	}
	return "", err
}

// renderOnce runs the template. The engine's panics on unexpected values become errors.
func (t *Template) renderOnce(messages []Message, opts Options) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", badRequest("messages", "the model's chat template fails on them: %v", p)
		}
	}()
	vars := map[string]jinja.Value{
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
		"add_generation_prompt": jinja.NewBool(opts.AddGenerationPrompt),
		"dict":                  jinja.NewCallable("dict", sortedDict),
	}
	for key, text := range t.tokens {
		vars[key] = jinja.NewString(text)
	}
	list := make([]jinja.Value, len(messages))
	for i, m := range messages {
		list[i] = toValue(m.fields)
	}
	vars["messages"] = jinja.NewList(list)
	if len(opts.Tools) > 0 {
		defs := make([]jinja.Value, len(opts.Tools))
		for i, tool := range opts.Tools {
			defs[i] = toValue(tool.def)
		}
		vars["tools"] = jinja.NewList(defs)
	}
	raised := ""
	vars["raise_exception"] = jinja.NewCallable("raise_exception", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		raised = "no reason given"
		if len(args) > 0 && args[0].IsString() {
			raised = args[0].AsString()
		}
		return jinja.Undefined(), fmt.Errorf("%s", raised)
	})

	text, err = t.compiled.RenderValues(vars)
	switch {
	case raised != "":
		return "", badRequest("messages", "the model's chat template refuses them: %s", raised)
	case err != nil:
		return "", badRequest("messages", "the model's chat template fails on them: %v", err)
	case len(text) > maxOutputBytes:
		return "", badRequest("messages", "make a prompt of %d bytes, the limit is %d", len(text), maxOutputBytes)
	}
	return text, nil
}

// sortedDict is dict(a=…, b=…). The engine loses the order of the arguments; sorted keys are at least the same every time.
func sortedDict(_ []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error) {
	d := jinja.NewDict()
	for _, key := range slices.Sorted(maps.Keys(kwargs)) {
		d.AsDict().Set(key, kwargs[key])
	}
	return d, nil
}
