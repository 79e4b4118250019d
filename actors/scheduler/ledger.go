package scheduler

import (
	"sync"

	"github.com/moerack/moerack/actors"
)

// Ledger holds an engine's counts. It outlives restarts of the scheduler. Anyone may read it; the scheduler writes before it
// tells a client, so that who has seen the end of an answer finds it counted.
type Ledger struct {
	mu        sync.Mutex // guards the fields below
	engine    actors.EngineStats
	prompt    int64
	generated int64
	exchange  actors.ExchangeSteps
	stages    actors.StageSteps
}

// NewLedger makes the ledger of an engine with a number of KV blocks, all free.
func NewLedger(engine, kvBlocks int) *Ledger {
	return &Ledger{engine: actors.EngineStats{Engine: engine, KVBlocks: kvBlocks, KVBlocksFree: kvBlocks}}
}

// AddTo adds the engine's counts to a node's.
func (l *Ledger) AddTo(s *actors.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Engines = append(s.Engines, l.engine)
	s.Steps = max(s.Steps, l.engine.Steps)
	s.PromptTokens += l.prompt
	s.GeneratedTokens += l.generated
	s.ExchangeSteps.Local += l.exchange.Local
	s.StageSteps.One += l.stages.One
}

// stepRun counts a step that the rank ran, as its plan says, and the tokens it gave.
func (l *Ledger) stepRun(r *run, generated int) {
	rows := r.plan.Rows[0] // of this engine, alone in its group
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.Steps++
	if r.plan.Exchange == actors.ExchangeLocal {
		l.exchange.Local++
	}
	if r.plan.Stages == 1 {
		l.stages.One++
	}
	l.engine.RealTokens += int64(rows)
	l.engine.PaddedTokens += int64(r.plan.PadTo - rows)
	l.prompt += int64(r.prompt)
	l.generated += int64(generated)
}

func (l *Ledger) kvFree(blocks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.KVBlocksFree = blocks
}
