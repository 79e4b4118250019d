package topology

import (
	"errors"
	"fmt"
	"strings"
)

// MaxRanks is the largest number of ranks of a layout. It bounds what a setting can make anyone allocate.
const MaxRanks = 1 << 20

// Dims are the sizes of a model that a layout cuts. 0: the model has no such thing.
type Dims struct {
	Heads       int // attention heads
	Experts     int // routed experts of a layer
	DenseWidth  int // inner width of dense layers
	ExpertWidth int // inner width of a routed expert
	SharedWidth int // inner width of a layer's shared experts together
	Vocab       int // tokens
}

// Validate returns all that keeps the layout from serving a model of these sizes, joined, each with the legal values: those that
// are right for all of the model's sizes together.
func (l Layout) Validate(d Dims) error {
	faults := []error{l.checkSize()}
	size := faults[0] == nil
	l.DataParallel = max(l.DataParallel, 1) // so that one fault does not hide the other ones
	if l.TensorParallel > 0 {
		faults = append(faults, l.checkTensorParallel(d))
	}
	switch {
	case l.ExpertParallel && d.Experts == 0:
		faults = append(faults, errors.New("enable-expert-parallel: the model has no routed experts that could be spread: leave it off"))
	case l.ExpertParallel && size && d.Experts%l.World() != 0:
		faults = append(faults, l.expertFault(d))
	}
	return errors.Join(faults...)
}

func (l Layout) checkSize() error {
	var faults []error
	if l.DataParallel < 1 {
		faults = append(faults, fmt.Errorf("data-parallel-size=%d: must be 1 … %d", l.DataParallel, MaxRanks))
	}
	if l.TensorParallel < 1 {
		faults = append(faults, fmt.Errorf("tensor-parallel-size=%d: must be 1 … %d", l.TensorParallel, MaxRanks))
	}
	if len(faults) == 0 && l.DataParallel > MaxRanks/l.TensorParallel {
		faults = append(faults, fmt.Errorf("data-parallel-size=%d × tensor-parallel-size=%d: must be at most %d ranks", l.DataParallel, l.TensorParallel, MaxRanks))
	}
	return errors.Join(faults...)
}

// cut is a size that tensor parallelism cuts.
type cut struct {
	size int
	name string // with the size in it
}

func (l Layout) cuts(d Dims) []cut {
	cuts := []cut{
		{d.Heads, fmt.Sprintf("the %d attention heads", d.Heads)},
		{d.DenseWidth, fmt.Sprintf("the width %d of dense layers", d.DenseWidth)},
		{d.SharedWidth, fmt.Sprintf("the width %d of shared experts", d.SharedWidth)},
	}
	if !l.ExpertParallel {
		cuts = append(cuts, cut{d.ExpertWidth, fmt.Sprintf("the width %d of experts (enable-expert-parallel is off)", d.ExpertWidth)})
	}
	return cuts
}

func (l Layout) checkTensorParallel(d Dims) error {
	tp := l.TensorParallel
	var broken []string
	for _, c := range l.cuts(d) {
		if c.size%tp != 0 {
			broken = append(broken, c.name)
		}
	}
	var faults []error
	if len(broken) > 0 {
		faults = append(faults, fmt.Errorf("tensor-parallel-size=%d must divide %s: legal are %s", tp, strings.Join(broken, " and "), list(l.legalTensorParallel(d))))
	}
	if !vocabDivides(d.Vocab, tp) {
		faults = append(faults, fmt.Errorf("tensor-parallel-size=%d leaves a rank without a part of the vocabulary of %d: legal are %s", tp, d.Vocab, list(l.legalTensorParallel(d))))
	}
	return errors.Join(faults...)
}

// vocabDivides says whether each of tp ranks gets a token.
func vocabDivides(vocab, tp int) bool {
	from, to := VocabSlice(vocab, tp, tp-1)
	return vocab == 0 || from < to
}

// legalTensorParallel returns the values of tensor-parallel-size that are right for the model; with expert parallelism only
// those that go with data-parallel-size, unless that is wrong by itself.
func (l Layout) legalTensorParallel(d Dims) []int {
	var sizes []int
	for _, c := range l.cuts(d) {
		sizes = append(sizes, c.size)
	}
	if l.ExpertParallel && d.Experts > 0 {
		share := d.Experts
		if share%l.DataParallel == 0 {
			share /= l.DataParallel
		}
		sizes = append(sizes, share)
	}
	var legal []int
	for _, tp := range divisors(sizes...) {
		if tp <= MaxRanks/l.DataParallel && vocabDivides(d.Vocab, tp) {
			legal = append(legal, tp)
		}
	}
	return legal
}

// expertFault says that the ranks do not divide the experts, and what would.
func (l Layout) expertFault(d Dims) error {
	dp, tp := l.DataParallel, l.TensorParallel
	var keep []string
	if d.Experts%tp == 0 && l.checkTensorParallel(d) == nil {
		keep = append(keep, fmt.Sprintf("with tensor-parallel-size=%d legal for data-parallel-size are %s", tp, list(divisors(d.Experts/tp))))
	}
	if d.Experts%dp == 0 {
		keep = append(keep, fmt.Sprintf("with data-parallel-size=%d legal for tensor-parallel-size are %s", dp, list(l.legalTensorParallel(d))))
	}
	if len(keep) == 0 {
		keep = append(keep, fmt.Sprintf("with tensor-parallel-size=1 legal for data-parallel-size are %s", list(divisors(d.Experts))))
	}
	return fmt.Errorf("data-parallel-size=%d × tensor-parallel-size=%d = %d ranks must divide the %d experts (enable-expert-parallel): %s",
		dp, tp, l.World(), d.Experts, strings.Join(keep, "; "))
}
