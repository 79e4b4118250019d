package rank

import (
	"context"
	"errors"
	"fmt"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
)

// member is the rank's part in the communicators of an epoch. It belongs to the device goroutine.
type member struct {
	opts   Options
	opened Opened
	comms  []hal.Comm // joined, in order
}

// join leaves the communicators of the former epoch and joins those of the next. After an error the rank is in none.
func (m *member) join(ctx context.Context, j *actors.Join) *actors.Joined {
	out := &actors.Joined{Rank: m.opts.Rank, Epoch: j.Epoch}
	if err := m.leave(); err != nil && hal.ClassOf(err) != hal.Aborted {
		m.opts.Logger.Warn("communicators of the former epoch did not close cleanly", "rank", m.opts.Rank, "error", err)
	}
	if err := guard(func() error { return m.enter(ctx, j) }); err != nil {
		out.Err = fmt.Errorf("joining epoch %d: %w", j.Epoch, errors.Join(err, m.leave()))
		return out
	}
	out.Comms = append(out.Comms, m.comms...)
	return out
}

// enter joins the communicators and gives them to the model.
func (m *member) enter(ctx context.Context, j *actors.Join) error {
	tp, err := m.meet(ctx, j.TP)
	if err != nil {
		return err
	}
	ep, err := m.meet(ctx, j.EP)
	if err != nil {
		return err
	}
	m.opened.Model.Join(tp, ep)
	return nil
}

// meet joins one communicator, nil if there is no one to meet.
func (m *member) meet(ctx context.Context, at *actors.Meeting) (hal.Comm, error) {
	if at == nil {
		return nil, nil //nolint:nilnil // no communicator is a legal one
	}
	c, err := m.opened.Join(ctx, at.Group, at.Rendezvous)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", at.Group.Name, err)
	}
	m.comms = append(m.comms, c)
	return c, nil
}

// leave closes the communicators; the model gets none.
func (m *member) leave() error {
	if len(m.comms) == 0 {
		return nil
	}
	err := guard(func() error { m.opened.Model.Join(nil, nil); return nil })
	for _, c := range m.comms {
		err = errors.Join(err, guard(c.Close))
	}
	m.comms = nil
	return err
}
