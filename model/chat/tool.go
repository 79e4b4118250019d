package chat

import "fmt"

// Tool is one checked tool definition of a request, kept in the order of its keys. It is read-only and may be shared.
type Tool struct{ def *object }

// ParseTools reads the "tools" of a request, a JSON list; null and an empty list give none. Every error is a
// *BadRequestError.
func ParseTools(data []byte) ([]Tool, error) {
	val, err := decode(data)
	if err != nil {
		return nil, badRequest("tools", "%v", err)
	}
	if val == nil {
		return nil, nil
	}
	list, ok := val.([]any)
	if !ok {
		return nil, badRequest("tools", "must be a list of tools, not %s", kindOf(val))
	}
	var tools []Tool
	for i, item := range list {
		param := fmt.Sprintf("tools[%d]", i)
		def, ok := item.(*object)
		if !ok {
			return nil, badRequest(param, "must be an object, not %s", kindOf(item))
		}
		if typ, _ := def.vals["type"].(string); typ != "function" {
			return nil, badRequest(param+".type", "%s is not supported, only \"function\" is", quoted(def.vals["type"]))
		}
		if _, err := functionOf(param, def); err != nil {
			return nil, err
		}
		tools = append(tools, Tool{def})
	}
	return tools, nil
}

// functionOf returns the "function" of a tool or a call, which must have a name.
func functionOf(param string, o *object) (*object, error) {
	function, ok := o.vals["function"].(*object)
	if !ok {
		return nil, badRequest(param+".function", "must be an object, is %s", kindOf(o.vals["function"]))
	}
	if name, ok := function.vals["name"].(string); !ok || name == "" {
		return nil, badRequest(param+".function.name", "must be a non-empty string, is %s", quoted(function.vals["name"]))
	}
	return function, nil
}

// parseToolCalls checks the calls of an assistant's message. Arguments become the JSON text that templates print: an object is
// taken as it was written, missing ones are "{}".
func parseToolCalls(param string, val any) ([]any, error) {
	if val == nil {
		return nil, nil
	}
	list, ok := val.([]any)
	if !ok {
		return nil, badRequest(param, "must be a list, not %s", kindOf(val))
	}
	calls := make([]any, len(list))
	for i, item := range list {
		param := fmt.Sprintf("%s[%d]", param, i)
		given, ok := item.(*object)
		if !ok {
			return nil, badRequest(param, "must be an object, not %s", kindOf(item))
		}
		function, err := functionOf(param, given)
		if err != nil {
			return nil, err
		}
		function = function.clone()
		switch arguments := function.vals["arguments"].(type) {
		case string:
		case *object:
			function.set("arguments", string(arguments.text))
		case nil:
			function.set("arguments", "{}")
		default:
			return nil, badRequest(param+".function.arguments", "must be a string of JSON, not %s", kindOf(arguments))
		}
		call := given.without(func(_ string, val any) bool { return val == nil })
		call.set("function", function)
		calls[i] = call
	}
	return calls, nil
}

// withParsedArguments returns a copy of the message in which arguments that hold a JSON object are that object, and whether
// there are any.
func (m Message) withParsedArguments() (Message, bool) {
	calls, _ := m.fields.vals["tool_calls"].([]any)
	changed := make([]any, len(calls))
	found := false
	for i, item := range calls {
		changed[i] = item
		call := item.(*object) // parseToolCalls made it
		function := call.vals["function"].(*object)
		arguments, err := decode([]byte(function.vals["arguments"].(string)))
		if o, ok := arguments.(*object); err == nil && ok {
			function, call = function.clone(), call.clone()
			function.set("arguments", o)
			call.set("function", function)
			changed[i], found = call, true
		}
	}
	if !found {
		return m, false
	}
	copied := m.fields.clone()
	copied.set("tool_calls", changed)
	return Message{copied}, true
}
