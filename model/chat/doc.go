// Package chat turns a conversation in the form of the OpenAI API into the prompt text that a model directory's chat template
// asks for.
//
// It owns reading and checking messages, and rendering. What clients may get wrong is found before the template sees it and
// comes back as a *BadRequestError: templates are lenient and would make an empty or wrong prompt of it. It does not add or
// remove BOS (templates write it themselves; encode the result without adding special tokens), it never runs a template that a
// client sent, and it does not parse answers.
//
// Limits. Input and result are bounded in bytes, messages in number, JSON in depth. The engine cannot be stopped, so the time of
// a render is bounded only by these and by the template, which belongs to the model and is trusted as its weights are. Known
// differences from Python's Jinja: a number such as 3.0 in a tool's schema is written as 3, integers beyond 64 bits as floats,
// and tojson(indent=…) sorts keys.
package chat
