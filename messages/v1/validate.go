package messagesv1

import (
	"errors"
	"fmt"
)

// Validate implements Message.
func (m *Votes) Validate() error {
	return first(
		named(m.GetGroup(), m.GetNode()),
		ascending("votes' engines", m.GetVotes(), (*Vote).GetEngine),
		ascending("missing engines", m.GetMissing(), itself),
	)
}

// Validate implements Message.
func (m *Plan) Validate() error {
	if err := first(named(m.GetGroup(), "coordinator"), ascending("members", m.GetMembers(), itself)); err != nil {
		return err
	}
	n := len(m.GetMembers())
	if n == 0 || len(m.GetRows()) != n || len(m.GetDrain()) != n {
		return fmt.Errorf("%d members have %d rows and %d drain wishes: need one of each for every member, and a member", n, len(m.GetRows()), len(m.GetDrain()))
	}
	switch m.GetAction() {
	case Action_ACTION_PARK:
		return nil
	case Action_ACTION_RUN:
		return m.validateRun()
	default:
		return fmt.Errorf("action %d is unknown", m.GetAction())
	}
}

// validateRun validates what only a plan to run has.
func (m *Plan) validateRun() error {
	switch m.GetExchange() {
	case Exchange_EXCHANGE_LOCAL, Exchange_EXCHANGE_ALLGATHER:
	default:
		return fmt.Errorf("exchange %d is unknown", m.GetExchange())
	}
	if m.GetStages() == 0 {
		return errors.New("no stages: a step that is run has at least one")
	}
	for i, rows := range m.GetRows() {
		if rows > m.GetPadTo() {
			return fmt.Errorf("engine %d has %d rows, above the %d that all compute", m.GetMembers()[i], rows, m.GetPadTo())
		}
	}
	return nil
}

// Validate implements Message.
func (m *Done) Validate() error { return named(m.GetGroup(), m.GetNode()) }

// Validate implements Message.
func (m *Wake) Validate() error {
	return first(named(m.GetGroup(), m.GetNode()), ascending("engines", m.GetEngines(), itself))
}

// Validate implements Message.
func (m *Call) Validate() error {
	return first(named(m.GetGroup(), "coordinator"), ascending("members", m.GetMembers(), itself))
}

// Validate implements Message.
func (m *Progress) Validate() error {
	return first(named(m.GetGroup(), m.GetNode()), ascending("ranks", m.GetRanks(), (*RankProgress).GetRank))
}

// Validate implements Message.
func (m *Register) Validate() error {
	if m.GetNode() == "" || m.GetHost() == "" {
		return fmt.Errorf("node %q on host %q: both need a name", m.GetNode(), m.GetHost())
	}
	if uint64(m.GetFirstEngine())+uint64(m.GetEngines()) > 1<<32 {
		return fmt.Errorf("node %s: %d engines from %d on: their numbers do not fit into 32 bits", m.GetNode(), m.GetEngines(), m.GetFirstEngine())
	}
	return nil
}

// Validate implements Message.
func (m *Registered) Validate() error {
	return first(
		ascending("assigned ranks", m.GetAssignments(), (*Assignment).GetRank),
		ascending("absent engines", m.GetAbsent(), itself),
	)
}

// Validate implements Message.
func (m *Endpoints) Validate() error {
	return first(named(m.GetGroup(), m.GetNode()), ascending("endpoints' ranks", m.GetEndpoints(), (*Endpoint).GetRank))
}

// Validate implements Message.
func (m *Ready) Validate() error {
	return first(named(m.GetGroup(), m.GetNode()), ascending("ranks", m.GetRanks(), itself))
}
