package nn

import "sync/atomic"

// Op is one entry of a step's list: what all ranks of a group do, in this order.
type Op struct {
	Name  OpName
	Layer int // −1 outside the layers
	Stage int
}

// Progress says where in a step's list a rank is. The rank's thread writes it; anyone may read it at any time.
type Progress struct {
	step  atomic.Uint64
	index atomic.Int64 // in list
	moves atomic.Uint64
	waits atomic.Bool // in a meeting, for others
	list  atomic.Pointer[[]Op]
}

// Position is a reading of Progress.
type Position struct {
	Step    uint64 // the step being run, or the last one
	Running bool   // inside a step
	Index   int    // in the step's list
	Op      Op     // entered last
	Waiting bool   // in a meeting, for ranks that have not come
	Moves   uint64 // grows with every op entered, with progress inside it, and with every step begun or ended
}

// Begin says that a step with this list of ops begins. The list is never changed; it comes by its address so that a step
// allocates nothing.
func (p *Progress) Begin(step uint64, list *[]Op) {
	p.index.Store(-1)
	p.waits.Store(false)
	p.list.Store(list)
	p.step.Store(step)
	p.moves.Add(1)
}

// Enter says that op i of the list begins.
func (p *Progress) Enter(i int) {
	p.index.Store(int64(i))
	p.waits.Store(false)
	p.moves.Add(1)
}

// Tick says that the op that runs makes progress, or begins to wait for other ranks (hal.Device.Pulse).
func (p *Progress) Tick(waits bool) {
	p.waits.Store(waits)
	p.moves.Add(1)
}

// End says that the step is over, well or not. Outside a step it does nothing.
func (p *Progress) End() {
	if p.list.Swap(nil) != nil {
		p.moves.Add(1)
	}
}

// Read returns where the rank is. Before the first op of a step Index is −1.
func (p *Progress) Read() Position {
	pos := Position{Step: p.step.Load(), Index: int(p.index.Load()), Moves: p.moves.Load(), Op: Op{Layer: -1}}
	if list := p.list.Load(); list != nil {
		pos.Running, pos.Waiting = true, p.waits.Load()
		if pos.Index >= 0 && pos.Index < len(*list) {
			pos.Op = (*list)[pos.Index]
		}
	}
	return pos
}
