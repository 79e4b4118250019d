package simd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/ref"
)

// Choice says which implementation serves an op, and why.
type Choice struct {
	Op, Implementation, Why string
}

// Go is the name of the implementation in plain Go, which is always there.
const Go = "go"

// set is an instruction set with the ops that it has.
type set struct {
	name  string
	there bool // processor and system have it
	ops   map[string]func(*kernels.Table)
	calls []string // sets that serve a part of its inputs
}

// Names returns the names of all instruction sets of this build, the most wanted first; any of them can be switched off.
func Names() []string {
	var names []string
	for _, s := range sets() {
		names = append(names, s.name)
	}
	return names
}

// Select returns the table with the best implementation of each op, and what was chosen, in order of the ops. off are names of
// instruction sets that are not to be used, with those that call them; an unknown one is an error that lists the known.
func Select(off []string) (kernels.Table, []Choice, error) {
	all := sets()
	for _, name := range off {
		if !slices.ContainsFunc(all, func(s set) bool { return s.name == name }) {
			return kernels.Table{}, nil, fmt.Errorf("simd: no instruction set %q in this build: it has %s", name, strings.Join(append(Names(), Go), ", "))
		}
	}
	t := ref.Table()
	var choices []Choice
	used := map[string]bool{}
	for _, op := range Ops {
		c := Choice{Op: op, Implementation: Go}
		var passed []string
		for _, s := range all {
			fill, has := s.ops[op]
			missed := slices.IndexFunc(s.calls, func(name string) bool { return slices.Contains(off, name) })
			switch {
			case !has:
			case slices.Contains(off, s.name):
				passed = append(passed, s.name+" is switched off")
			case missed >= 0:
				passed = append(passed, s.name+" calls "+s.calls[missed]+", which is switched off")
			case !s.there:
				passed = append(passed, "no "+s.name+" here")
			default:
				fill(&t)
				c.Implementation = s.name
				used[s.name] = true
			}
			if c.Implementation != Go {
				break
			}
		}
		switch {
		case len(passed) > 0:
			c.Why = strings.Join(passed, ", ")
		case c.Implementation != Go:
			c.Why = "the best there is"
		case len(all) == 0:
			c.Why = none
		default:
			c.Why = "no other version"
		}
		choices = append(choices, c)
	}
	t.Name = Go
	for _, s := range all {
		if used[s.name] {
			t.Name = s.name
			break
		}
	}
	return t, choices, nil
}

// Ops are the names of the table's functions, in their order.
var Ops = []string{
	"Embed", "RMSNorm", "AddRMSNorm", "MatMul", "HeadMatMul", "Rope", "MLAAttention", "AttendKeys", "Route", "SwiGLU", "Quantize", "MatMul8", "SwiGLU8",
	"Combine", "Add", "Finite", "BlockMax", "BlockSumExp",
}
