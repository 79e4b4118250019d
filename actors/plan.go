package actors

import (
	"fmt"

	"github.com/moerack/moerack/topology"
)

// MakePlan decides a step from the votes of all its engines, numbered 0 … engines−1, in any order. It is pure: the same votes
// give the same plan. It fails if a vote is missing, doubled, or of another term, epoch, wave or step than the first.
func MakePlan(votes []Vote, engines, tensorParallel int) (Plan, error) {
	if len(votes) != engines || engines < 1 || tensorParallel < 1 {
		return Plan{}, fmt.Errorf("plan: %d votes for %d engines of %d ranks: need one vote of each", len(votes), engines, tensorParallel)
	}
	first := votes[0]
	rows, voted := make([]int, engines), make([]bool, engines)
	action := Park
	for _, v := range votes {
		switch {
		case v.Engine < 0 || v.Engine >= engines:
			return Plan{}, fmt.Errorf("plan: step %d: vote of engine %d, group has 0 … %d", first.Step, v.Engine, engines-1)
		case voted[v.Engine]:
			return Plan{}, fmt.Errorf("plan: step %d: two votes of engine %d", first.Step, v.Engine)
		case v.Term != first.Term || v.Epoch != first.Epoch || v.Wave != first.Wave || v.Step != first.Step:
			return Plan{}, fmt.Errorf("plan: engine %d votes for term %d, epoch %d, wave %d, step %d, engine %d for %d, %d, %d, %d",
				v.Engine, v.Term, v.Epoch, v.Wave, v.Step, first.Engine, first.Term, first.Epoch, first.Wave, first.Step)
		case v.Rows < 0:
			return Plan{}, fmt.Errorf("plan: step %d: engine %d votes for %d rows: must be ≥ 0", v.Step, v.Engine, v.Rows)
		}
		voted[v.Engine], rows[v.Engine] = true, v.Rows
		if v.Rows > 0 {
			action = Run
		}
	}
	return Plan{
		Term: first.Term, Epoch: first.Epoch, Wave: first.Wave, Step: first.Step,
		Action: action, Rows: rows, PadTo: topology.PadTo(rows, tensorParallel),
		Exchange: ExchangeLocal, Stages: 1,
	}, nil
}
