package chat

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func mustCompile(t testing.TB, source string) *Template {
	t.Helper()
	tpl, err := compile("test", source, map[string]string{"bos_token": "<s>", "eos_token": "</s>"})
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func mustParse(t testing.TB, messages string) []Message {
	t.Helper()
	m, err := ParseMessages([]byte(messages))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const dump = `{% for m in messages %}{{ m | tojson }}{% endfor %}`

// TestRules has one case for each thing that is put right before a template sees it.
func TestRules(t *testing.T) {
	const call = `[{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [2]}"}}]}]`
	for _, c := range []struct{ name, template, messages, want string }{
		{
			"order of keys", dump, `[{"z": 1, "role": "user", "b": {"y": [1, 2.5, true], "a": "<&>"}, "content": "x"}]`,
			`{"z": 1, "role": "user", "b": {"y": [1, 2.5, true], "a": "<&>"}, "content": "x"}`,
		},
		{"last of a repeated key", dump, `[{"role": "user", "content": "x", "role": "system"}]`, `{"role": "system", "content": "x"}`},
		{"null tool_calls", dump, `[{"role": "assistant", "content": "x", "tool_calls": null}]`, `{"role": "assistant", "content": "x"}`},
		{"empty tool_calls", dump, `[{"role": "assistant", "content": "x", "tool_calls": []}]`, `{"role": "assistant", "content": "x"}`},
		{"other null keys", dump, `[{"role": "user", "content": "x", "name": null, "audio": null}]`, `{"role": "user", "content": "x"}`},
		{"null content stays", dump, `[{"role": "assistant", "content": null}]`, `{"role": "assistant", "content": null}`},
		{"missing content is null", dump, `[{"role": "assistant"}]`, `{"role": "assistant", "content": null}`},
		{"null content is none", `{% if messages[0]['content'] is none %}none{% endif %}`, `[{"role": "assistant", "content": null}]`, `none`},
		{"null content adds nothing", `{{ '<' + messages[0]['content'] + '>' }}`, `[{"role": "assistant", "content": null}]`, `<>`},
		{"text parts", dump, `[{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]`, `{"role": "user", "content": "a\nb"}`},
		{"one text part", dump, `[{"role": "user", "content": [{"type": "text", "text": "a"}]}]`, `{"role": "user", "content": "a"}`},
		{"developer", dump, `[{"role": "developer", "content": "x"}]`, `{"role": "system", "content": "x"}`},
		{"developer known", `{# developer #}` + dump, `[{"role": "developer", "content": "x"}]`, `{"role": "developer", "content": "x"}`},
		{"arguments as text", `{{ messages[0].tool_calls[0].function.arguments }}`, call, `{"b": 1, "a": [2]}`},
		{"arguments as object", `{% for k, v in messages[0].tool_calls[0].function.arguments | items %}{{ k }}={{ v }};{% endfor %}`, call, `b=1;a=[2];`},
		{
			"object arguments as text", `{{ messages[0].tool_calls[0].function.arguments }}`,
			`[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": { "b":1,"a":2}}}]}]`, `{ "b":1,"a":2}`,
		},
		{"no arguments", `{{ messages[0].tool_calls[0].function.arguments }}`, `[{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]`, `{}`},
		{"special tokens", `{{ bos_token }}{{ eos_token }}{% if pad_token is defined %}pad{% endif %}`, `[{"role": "user", "content": ""}]`, `<s></s>`},
		{"no tools is none", `{{ tools is none }} {{ add_generation_prompt }}`, `[{"role": "user", "content": ""}]`, `True False`},
		{"half a character", dump, `[{"role": "user", "content": "x \ud83d"}]`, `{"role": "user", "content": "x ` + "\uFFFD" + `"}`},
		{"dict has one order", `{{ dict(c=1, a=2, b=3) | tojson }}`, `[{"role": "user", "content": ""}]`, `{"a": 2, "b": 3, "c": 1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustCompile(t, c.template).Render(mustParse(t, c.messages), Options{})
			if err != nil || got != c.want {
				t.Errorf("Render = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	tools, err := ParseTools([]byte(`[{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}]`))
	if err != nil || len(tools) != 1 {
		t.Fatalf("ParseTools = %v, %v", tools, err)
	}
	tpl := mustCompile(t, `{{ tools[0] | tojson }} {{ add_generation_prompt }}`)
	got, err := tpl.Render(mustParse(t, `[{"role": "user", "content": "x"}]`), Options{AddGenerationPrompt: true, Tools: tools})
	const want = `{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}} True`
	if err != nil || got != want {
		t.Errorf("Render = %q, %v, want %q", got, err, want)
	}
	for _, none := range []string{"null", "[]"} {
		if tools, err := ParseTools([]byte(none)); err != nil || len(tools) != 0 {
			t.Errorf("ParseTools(%s) = %v, %v", none, tools, err)
		}
	}
}

// wantBad fails unless err is a BadRequestError about param whose text has reason.
func wantBad(t *testing.T, what string, err error, param, reason string) {
	t.Helper()
	bad := (*BadRequestError)(nil)
	if !errors.As(err, &bad) || bad.Param != param || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: error %v, want one about %s with %q", what, err, param, reason)
	}
}

func TestBadMessages(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, c := range []struct{ in, param, reason string }{
		{`[]`, "messages", "must not be empty"},
		{`null`, "messages", "list of messages, not null"},
		{`{}`, "messages", "not an object"},
		{`"x"`, "messages", "not a string"},
		{`[`, "messages", "ends early"},
		{``, "messages", "ends early"},
		{`[{"role": "user", "content": "x"}`, "messages", "ends early"},
		{`[{"role" "user"}]`, "messages", "byte "},
		{`[] []`, "messages", "more after"},
		{`["x"]`, "messages[0]", "must be an object"},
		{`[{"content": "x"}]`, "messages[0].role", "must be a string, is null"},
		{`[{"role": 1, "content": "x"}]`, "messages[0].role", "is a number"},
		{`[{"role": "user", "content": "x"}, {"role": "banana", "content": "x"}]`, "messages[1].role", `unknown role "banana" (known: system, `},
		{`[{"role": "user"}]`, "messages[0].content", "missing or null"},
		{`[{"role": "system", "content": null}]`, "messages[0].content", "missing or null"},
		{`[{"role": "user", "content": 7}]`, "messages[0].content", "not a number"},
		{`[{"role": "user", "content": {"text": "x"}}]`, "messages[0].content", "not an object"},
		{`[{"role": "user", "content": []}]`, "messages[0].content", "empty list"},
		{`[{"role": "user", "content": ["x"]}]`, "messages[0].content[0]", "must be an object"},
		{`[{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]}]`, "messages[0].content[1].type", `"image_url" is not supported`},
		{`[{"role": "user", "content": [{"text": "x"}]}]`, "messages[0].content[0].type", "null is not supported"},
		{`[{"role": "user", "content": [{"type": "text"}]}]`, "messages[0].content[0].text", "must be a string"},
		{`[{"role": "user", "content": "x", "name": 1}]`, "messages[0].name", "must be a string"},
		{`[{"role": "tool", "content": "x", "tool_call_id": {}}]`, "messages[0].tool_call_id", "must be a string"},
		{`[{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]`, "messages[0].tool_calls", "role is user"},
		{`[{"role": "assistant", "tool_calls": {}}]`, "messages[0].tool_calls", "must be a list"},
		{`[{"role": "assistant", "tool_calls": [1]}]`, "messages[0].tool_calls[0]", "must be an object"},
		{`[{"role": "assistant", "tool_calls": [{}]}]`, "messages[0].tool_calls[0].function", "must be an object"},
		{`[{"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}]`, "messages[0].tool_calls[0].function.name", "non-empty"},
		{`[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}]`, "messages[0].tool_calls[0].function.arguments", "not a number"},
		{`[{"role": "user", "content": "x", "n": 1e999}]`, "messages", "out of range"},
		{`[{"role": "user", "content": "x", "n": ` + deep + `}]`, "messages", "nested more than 64"},
		{`["` + strings.Repeat("x", maxInputBytes) + `"]`, "messages", "the limit is 4194304"},
		{`[` + strings.Repeat(`1,`, maxMessages) + `1]`, "messages", "the limit is 4096"},
	} {
		_, err := ParseMessages([]byte(c.in))
		wantBad(t, c.in[:min(len(c.in), 80)], err, c.param, c.reason)
	}
}

func TestBadTools(t *testing.T) {
	for _, c := range []struct{ in, param, reason string }{
		{`{`, "tools", "ends early"},
		{`{}`, "tools", "must be a list"},
		{`[1]`, "tools[0]", "must be an object"},
		{`[{"type": "retrieval"}]`, "tools[0].type", `"retrieval" is not supported`},
		{`[{"type": "function"}]`, "tools[0].function", "must be an object"},
		{`[{"type": "function", "function": {"name": 1}}]`, "tools[0].function.name", "non-empty string"},
	} {
		_, err := ParseTools([]byte(c.in))
		wantBad(t, c.in, err, c.param, c.reason)
	}
}

func TestBadRenders(t *testing.T) {
	one := mustParse(t, `[{"role": "user", "content": "x"}]`)
	for _, c := range []struct {
		name, template string
		messages       []Message
		opts           Options
		param, reason  string
	}{
		{"no messages", dump, nil, Options{}, "messages", "must not be empty"},
		{"zero message", dump, []Message{{}}, Options{}, "messages[0].role", "unknown role"},
		{"raised", `{{ raise_exception('roles must alternate') }}`, one, Options{}, "messages", "refuses them: roles must alternate"},
		{"raised without a reason", `{{ raise_exception() }}`, one, Options{}, "messages", "refuses them"},
		{"raised in a macro", `{% macro f() %}{{ raise_exception('deep') }}{% endmacro %}{{ f() }}`, one, Options{}, "messages", "refuses them: deep"},
		{"unknown filter", `{{ messages | nonsense }}`, one, Options{}, "messages", "nonsense"},
		{"engine panics", `{{ 'x' * -1 }}`, one, Options{}, "messages", "fails on them"},
		{"result too long", `{{ 'xxxxxxxx' * 1048576 }}`, one, Options{}, "messages", "make a prompt of 8388608 bytes"},
	} {
		got, err := mustCompile(t, c.template).Render(c.messages, c.opts)
		wantBad(t, c.name, err, c.param, c.reason)
		if got != "" {
			t.Errorf("%s: has text %q beside the error", c.name, got)
		}
	}
}

// TestRenderKeepsInput renders one conversation many times at once with a template that changes what it is given.
func TestRenderKeepsInput(t *testing.T) {
	tpl := mustCompile(t, `{% set ns = namespace(n=0) %}{% for m in messages %}{{ m.list.append(1) }}{% set ns.n = ns.n + m.list | length %}{% endfor %}{{ ns.n }}`)
	messages := mustParse(t, `[{"role": "developer", "content": "x", "list": []}, {"role": "user", "content": "x", "list": [1]}]`)
	want, err := tpl.Render(messages, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got, err := tpl.Render(messages, Options{}); err != nil || got != want {
					t.Errorf("Render = %q, %v, want %q as the first time", got, err, want)
				}
			}
		})
	}
	wg.Wait()
	if messages[0].Role() != "developer" {
		t.Errorf("Render changed the caller's message: role %s", messages[0].Role())
	}
}

// FuzzParseMessages checks that any input ends in checked messages that render, or in a BadRequestError.
func FuzzParseMessages(f *testing.F) {
	f.Add([]byte(`[{"role": "user", "content": [{"type": "text", "text": "a"}]}]`))
	f.Add([]byte(`[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}], "x": [1e9, -0, {}]}]`))
	f.Add([]byte(`[{"role": "\ud83d", "content": null`))
	tpl := mustCompile(f, dump+`{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | items }}{% endfor %}{% endfor %}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, err := ParseMessages(data)
		if err == nil {
			_, err = tpl.Render(messages, Options{})
		}
		if bad := (*BadRequestError)(nil); err != nil && !errors.As(err, &bad) {
			t.Errorf("%v is no BadRequestError", err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	tpl, err := Load("../../test/models/tokenizer")
	if err != nil {
		b.Fatal(err)
	}
	messages := mustParse(b, `[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"},
		{"role": "assistant", "content": "A model."}, {"role": "user", "content": "And?"}]`)
	for b.Loop() {
		if _, err := tpl.Render(messages, Options{AddGenerationPrompt: true}); err != nil {
			b.Fatal(err)
		}
	}
}
