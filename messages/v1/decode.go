package messagesv1

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Message is a message that is sent on its own.
type Message interface {
	proto.Message
	// Validate returns what contradicts the comments of the message's fields, so that a reader need not check lengths, order
	// and enums again. Whether the content fits the receiver's state is not its matter.
	Validate() error
}

// Decode reads data into m and validates it. The error names the message.
func Decode(data []byte, m Message) error {
	name := m.ProtoReflect().Descriptor().Name()
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("read %s: %w: the sender may be of another version", name, err)
	}
	if err := m.Validate(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// named demands names that are not empty.
func named(group, node string) error {
	switch {
	case group == "":
		return errors.New("the group has no name")
	case node == "":
		return errors.New("the node has no name")
	}
	return nil
}

// ascending demands that numbers grow.
func ascending[T any](what string, list []T, number func(T) uint32) error {
	for i := 1; i < len(list); i++ {
		if a, b := number(list[i-1]), number(list[i]); a >= b {
			return fmt.Errorf("%s are not ascending: %d is followed by %d", what, a, b)
		}
	}
	return nil
}

func itself(n uint32) uint32 { return n }

// first returns the first error that is not nil.
func first(errs ...error) error { return cmp.Or(errs...) }
