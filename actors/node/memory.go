package node

import (
	"fmt"
	"sync"

	"github.com/moerack/moerack/hal"
)

// memory is what the ranks of a node may use. Devices that are shares of one host report the same free bytes each, so they are
// asked once, before any rank has taken some, and every rank gets an equal part; then the ranks choose equal sizes, and together
// they do not promise the same bytes twice.
type memory struct {
	ranks   int   // of the node
	weights int64 // bytes that they will take together beside the files, before anything else

	once sync.Once
	free int64
	err  error
}

// share returns the bytes that one rank may use. The first rank that comes has its device ask.
func (m *memory) share(dev hal.Device) (int64, error) {
	m.once.Do(func() {
		now, err := dev.Memory()
		if err != nil {
			m.err = fmt.Errorf("asking device %s for its memory: %w", dev.Describe().Name, err)
		}
		if m.free = now.Free - m.weights; m.free < 0 && m.err == nil {
			m.err = fmt.Errorf("device %s: weights that are converted take %d bytes of memory, %d are free: use dtype=auto, or a checkpoint that is stored so (moectl quantize)",
				dev.Describe().Name, m.weights, now.Free)
		}
	})
	return m.free / int64(m.ranks), m.err
}
