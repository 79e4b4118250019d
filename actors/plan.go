package actors

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/moerack/moerack/topology"
)

// Beginning is what all members of an epoch hold before its first plan: no action, and the numbers that the first plan follows.
// members are engines, ascending; first is the step of the first plan, wave its wave.
func Beginning(group string, term, epoch, wave, first uint64, members []int) *Plan {
	return &Plan{Group: group, Term: term, Epoch: epoch, Wave: wave - 1, Step: first - 1, Members: members}
}

// MakePlan decides the step that follows former, which is a plan or the beginning of an epoch, from the votes of all members, in
// any order. It is pure: the same votes give the same plan, and it changes none of its arguments. tensorParallel is the ranks of
// an engine, exchange that of a step that is run. It fails if a vote is missing, doubled, of a stranger, or for another step.
func MakePlan(former *Plan, votes []Vote, tensorParallel int, exchange topology.Exchange) (*Plan, error) {
	p := &Plan{
		Group: former.Group, Term: former.Term, Epoch: former.Epoch, Wave: former.Wave, Step: former.Step + 1,
		Action: Park, Members: former.Members, Rows: make([]int, len(former.Members)), Drain: make([]bool, len(former.Members)),
		Exchange: exchange, Stages: 1,
	}
	if former.Action != Run {
		p.Wave++
	}
	if len(votes) != len(p.Members) || len(votes) == 0 {
		return nil, fmt.Errorf("plan: step %d: %d votes for %d engines: need one vote of each", p.Step, len(votes), len(p.Members))
	}
	voted := make([]bool, len(p.Members))
	for _, v := range votes {
		at, ok := slices.BinarySearch(p.Members, v.Engine)
		switch {
		case !ok:
			return nil, fmt.Errorf("plan: step %d: vote of engine %d, members are %v", p.Step, v.Engine, p.Members)
		case voted[at]:
			return nil, fmt.Errorf("plan: step %d: two votes of engine %d", p.Step, v.Engine)
		case v.Epoch != p.Epoch || v.Step != p.Step:
			return nil, fmt.Errorf("plan: step %d of epoch %d: engine %d votes for step %d of epoch %d", p.Step, p.Epoch, v.Engine, v.Step, v.Epoch)
		case v.Rows < 0:
			return nil, fmt.Errorf("plan: step %d: engine %d votes for %d rows: must be ≥ 0", p.Step, v.Engine, v.Rows)
		}
		voted[at], p.Rows[at], p.Drain[at] = true, v.Rows, v.Drain
		if v.Rows > 0 || v.Queue > 0 {
			p.Action = Run
		}
	}
	p.PadTo = topology.PadTo(p.Rows, tensorParallel)
	p.Hash = p.Sum()
	return p, nil
}

// Sum returns what Hash must be: FNV-1a of all fields but term and hash.
func (p *Plan) Sum() uint64 {
	h := fnv.New64a()
	var word [8]byte
	add := func(v uint64) {
		binary.LittleEndian.PutUint64(word[:], v)
		h.Write(word[:])
	}
	text := func(s string) {
		add(uint64(len(s)))
		h.Write([]byte(s))
	}
	text(p.Group)
	add(p.Epoch)
	add(p.Wave)
	add(p.Step)
	add(uint64(p.Action))
	add(uint64(len(p.Members)))
	for _, m := range p.Members {
		add(uint64(m))
	}
	add(uint64(len(p.Rows)))
	for _, r := range p.Rows {
		add(uint64(r))
	}
	add(uint64(len(p.Drain)))
	for _, d := range p.Drain {
		if d {
			add(1)
		} else {
			add(0)
		}
	}
	add(uint64(p.PadTo))
	text(string(p.Exchange))
	add(uint64(p.Stages))
	return h.Sum64()
}
