// Package bus is the contract of what carries control messages between nodes, and between a node and the coordinator in it. It
// owns no transport: natsbus and membus do, and bustest holds both to this file. It knows subjects and bytes only; it repeats
// nothing, keeps nothing and orders nothing across subjects: who sends repeats until it is answered. Tensors never pass here.
package bus

import (
	"context"
	"errors"
)

// Errors of a bus. They come wrapped with the operation and the subject.
var (
	// ErrNoResponders ends a Request on a subject that nobody subscribes to. It comes at once.
	ErrNoResponders = errors.New("nobody answers on this subject")
	// ErrClosed is returned by Subscribe and Request once Close began, also if they wait, and by the rest once it has ended.
	ErrClosed = errors.New("the bus is closed")
	// ErrTooLarge is returned for data above the limit of the transport, which the error names; nothing was sent.
	ErrTooLarge = errors.New("the message is too large for the bus")
	// ErrSubject is returned for a subject that is empty, has an empty token, or holds spaces, control characters or wildcards.
	ErrSubject = errors.New("not a subject")
	// ErrNoReply is returned by Respond for a message that came by Publish.
	ErrNoReply = errors.New("the sender waits for no answer")
)

// Bus is one participant's connection. Every method may be called from any goroutine, also from a handler, except Close, which
// would wait for that handler.
type Bus interface {
	// Publish sends data to all who subscribe to subject, this bus included, and returns without waiting for any of them.
	// Delivery is at most once. What one bus publishes on one subject arrives in order. Data is the caller's again on return.
	// While the transport is not connected messages may be kept for a while or lost; that is no error.
	Publish(subject string, data []byte) error
	// Subscribe calls h for every message published on subject after it returned, one call at a time and in order. Messages
	// that come while a call runs wait, up to a limit of the transport; what is above it is lost. While the transport is not
	// connected the subscription waits for it; that is no error.
	Subscribe(subject string, h Handler) (Subscription, error)
	// Request publishes data on subject and waits for the first answer, which is the caller's. It ends with ErrNoResponders,
	// ErrClosed, or, when ctx ends first, with its cause.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Connected reports whether the transport is connected now, as far as this end knows. Who judges others by their silence must not
	// while it is not.
	Connected() bool
	// Kind returns how the bus travels, for logs and stats.
	Kind() Kind
	// Counts returns what passed through this bus so far.
	Counts() Counts
	// Close ends all subscriptions, handles what has arrived for them (handlers may still Publish and Respond), sends what was
	// published, and gives up the connection. When ctx ends first it drops the rest and returns the cause. Afterwards no handler
	// is called, and no goroutine is left but those of handlers that have not returned when ctx ended. A second call waits as
	// the first does.
	Close(ctx context.Context) error
}

// Handler takes a message. It must not block: its bus delivers nothing else to the subscription until it returns.
type Handler func(m Message)

// Message is what a handler gets. It may be kept.
type Message struct {
	Subject string
	Data    []byte // the handler's own

	respond func(data []byte) error
}

// NewMessage makes a message for a handler; transports call it. Respond is nil if the sender waits for no answer.
func NewMessage(subject string, data []byte, respond func(data []byte) error) Message {
	return Message{Subject: subject, Data: data, respond: respond}
}

// Respond answers a Request. It may be called later, from any goroutine; only the first answer that arrives counts. Data is the
// caller's again on return.
func (m Message) Respond(data []byte) error {
	if m.respond == nil {
		return ErrNoReply
	}
	return m.respond(data)
}

// Subscription is an interest in a subject.
type Subscription interface {
	// Unsubscribe ends it without waiting: one call that is under way goes on, messages that wait are dropped. It may be called
	// from the handler, and again.
	Unsubscribe()
}

// Kind is how a bus travels.
type Kind string

// The kinds.
const (
	Memory     Kind = "memory"      // inside the process, without NATS
	NATSInProc Kind = "nats-inproc" // a NATS server inside the process that opens no port
	NATSTCP    Kind = "nats-tcp"    // a NATS server elsewhere
)

// Counts says how many messages passed through a bus. Requests and answers count as messages.
type Counts struct {
	Published uint64 // handed to the transport
	Received  uint64 // handed to handlers, and answers taken
}
