package chat

import (
	"errors"
	"fmt"
)

// ErrNoTemplate says that a model directory has no chat template; plain prompts still work.
var ErrNoTemplate = errors.New("no chat template; use plain prompts")

// BadRequestError says what is wrong with a conversation: the sender's fault, to be answered with HTTP status 400.
type BadRequestError struct {
	Param  string // where, as the API names it: "messages[2].content"
	Reason string // what, and what would be right
}

func (e *BadRequestError) Error() string { return "chat: " + e.Param + ": " + e.Reason }

func badRequest(param, format string, args ...any) *BadRequestError {
	return &BadRequestError{Param: param, Reason: fmt.Sprintf(format, args...)}
}
