package cpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moerack/moerack/hal"
)

// ending is why an operation, or all of a communicator, cannot meet.
type ending struct {
	class  hal.Class
	what   string
	absent string // names of those who had not come, or empty
	cause  error
}

var (
	errNoCause = errors.New("no cause given")
	errClosed  = errors.New("a member gave up its part")
	errDied    = errors.New("its part is not done")
)

// describe names operation and shape for messages.
func (c *call) describe() string {
	switch c.op {
	case "Barrier":
		return c.op
	case "AllToAllV":
		return fmt.Sprintf("%s %s send %v recv %v", c.op, c.in, c.send, c.recv)
	case "Recv", "ReduceScatter":
		return c.op + " " + c.out.String()
	default:
		return c.op + " " + c.in.String()
	}
}

// meets reports whether the call needs the member.
func (c *call) meets(member int) bool { return c.peer == everyone || c.peer == member }

// label names group and epoch.
func label(g hal.Group) string { return fmt.Sprintf("group %s epoch %d", g.Name, g.Epoch) }

func (m *meeting) everyone() []int {
	all := make([]int, m.group.Size)
	for i := range all {
		all[i] = i
	}
	return all
}

// disagreement names two members and what they called.
func (m *meeting) disagreement(a, b int) ending {
	return ending{class: hal.CallerFault, what: fmt.Sprintf("the members disagree: %s: %s, %s: %s",
		m.group.Names[a], m.members[a].call.describe(), m.group.Names[b], m.members[b].call.describe())}
}

// brought says that a member's own call was wrong.
func (m *meeting) brought(rank int) ending {
	return ending{class: hal.CallerFault, what: m.group.Names[rank] + " brought a wrong call", cause: m.members[rank].call.err}
}

func (m *meeting) closedBy(rank int) ending {
	return ending{class: hal.Aborted, what: "given up by " + m.group.Names[rank], cause: errClosed}
}

// absent names those whom the waiting call of rank still needs.
func (m *meeting) absent(rank int) string {
	var names []string
	for i := range m.members {
		p := &m.members[i]
		if i != rank && m.members[rank].call.meets(i) && (p.state.Load() != waiting || !p.call.meets(rank)) {
			names = append(names, m.group.Names[i])
		}
	}
	return strings.Join(names, ", ")
}

// failure is why in the words of one member's operation.
func (m *meeting) failure(rank int, why ending) error {
	return m.failureOf(m.members[rank].call.op, rank, why)
}

func (m *meeting) failureOf(op string, rank int, why ending) error {
	detail := label(m.group) + ": " + why.what
	if why.absent != "" {
		detail += ", absent: " + why.absent
	}
	return &hal.Error{Op: op, Device: m.members[rank].device, Class: why.class, Detail: detail, Err: why.cause}
}

// aborted returns the error of op, which runs on a member's device without meeting anybody, nil as long as nobody has aborted.
func (m *meeting) aborted(op string, rank int) error {
	select {
	case <-m.over:
	default:
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended.class != hal.Aborted {
		return nil // members that are out of step are told when they meet
	}
	return m.failureOf(op, rank, *m.ended)
}

// late is the error of an operation that began after the end. If nobody was waiting then, those it needs are the absent.
func (m *meeting) late(rank int) error {
	why := *m.ended
	if why.class == hal.Aborted {
		why.what = "had ended before: " + why.what
		if why.absent == "" {
			why.absent = m.absent(rank)
		}
	}
	return m.failure(rank, why)
}
