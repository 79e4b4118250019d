package cpu

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/moerack/moerack/hal"
)

// registry holds the meetings that ranks of this process have still to find. It is a variable of the package because devices of a
// process share nothing else: rank 0 puts a meeting there before it publishes the key, and it is gone when all have joined, or
// when the meeting ended. The key is new for each Join of rank 0, so two groups of one name and epoch never meet.
type registry struct {
	mu       sync.Mutex
	last     uint64
	meetings map[uint64]*meeting
}

var open = registry{meetings: map[uint64]*meeting{}}

// process is the same for all devices of this process and for no others.
var process = sync.OnceValue(func() (p [16]byte) {
	// Read never fails: the runtime ends the process before.
	_, _ = rand.Read(p[:])
	return p
})

func (r *registry) key() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

func (r *registry) put(m *meeting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meetings[m.token] = m
}

func (r *registry) get(key uint64) *meeting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meetings[key]
}

func (r *registry) remove(key uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.meetings, key)
}

// magic starts an endpoint and names its version; process and key follow.
const magic = "moerack/cpu/1\n"

func endpoint(key uint64) []byte {
	p := process()
	return binary.LittleEndian.AppendUint64(append([]byte(magic), p[:]...), key)
}

// keyOf returns the key of an endpoint of this process.
func keyOf(e []byte) (uint64, error) {
	p := process()
	switch {
	case !bytes.HasPrefix(e, []byte(magic)) || len(e) != len(endpoint(0)):
		return 0, fmt.Errorf("has published %q, not an endpoint of a cpu device of this version", shorten(e))
	case !bytes.Equal(e[len(magic):len(e)-8], p[:]):
		return 0, fmt.Errorf("is in another process: communicators between processes are not there yet")
	}
	return binary.LittleEndian.Uint64(e[len(e)-8:]), nil
}

func shorten(e []byte) []byte { return e[:min(len(e), 32)] }

// Join makes the device a member of a group whose ranks are all in this process.
func (d *device) Join(ctx context.Context, g hal.Group, r hal.Rendezvous) (hal.Comm, error) {
	if err := d.checkGroup(g, r); err != nil {
		return nil, err
	}
	g.Names = slices.Clone(g.Names)
	key := open.key()
	var m *meeting
	if g.Rank == 0 {
		m = newMeeting(g, key, runtime.GOMAXPROCS(0) > 1 && runtime.GOMAXPROCS(0) >= g.Size)
		open.put(m)
	}
	found, err := d.find(ctx, g, r, key, m)
	if err == nil {
		err = found.join(ctx, g, d.name)
	}
	if err != nil {
		if m != nil {
			m.end(ending{class: hal.Aborted, what: g.Names[0] + " could not join", cause: err})
		}
		return nil, err
	}
	c := &comm{dev: d, group: g, m: found}
	d.comms = append(d.comms, c)
	return c, nil
}

func (d *device) checkGroup(g hal.Group, r hal.Rendezvous) error {
	var faults []string
	if d.closed {
		faults = append(faults, "the device is closed")
	}
	if g.Size < 1 {
		faults = append(faults, fmt.Sprintf("size %d: want 1 or more", g.Size))
	}
	if g.Rank < 0 || g.Rank >= g.Size {
		faults = append(faults, fmt.Sprintf("rank %d of %d: want 0 … size-1", g.Rank, g.Size))
	}
	if len(g.Names) != g.Size {
		faults = append(faults, fmt.Sprintf("%d names for %d ranks: want one each", len(g.Names), g.Size))
	}
	if r == nil && g.Size > 1 {
		faults = append(faults, "no rendezvous to meet the others")
	}
	if len(faults) == 0 {
		return nil
	}
	return d.fault("Join", "%s: %s", label(g), strings.Join(faults, "; "))
}

// find publishes this rank's endpoint, collects all and returns the meeting that rank 0 put up; a group of one meets nobody.
func (d *device) find(ctx context.Context, g hal.Group, r hal.Rendezvous, key uint64, own *meeting) (*meeting, error) {
	if g.Size == 1 {
		return own, nil
	}
	mine := endpoint(key)
	if err := r.Publish(ctx, mine); err != nil {
		return nil, d.unmet(g, "its endpoint could not be published", err)
	}
	all, err := r.Collect(ctx)
	if err != nil {
		return nil, d.unmet(g, "not all members came", err)
	}
	if len(all) != g.Size {
		return nil, d.fault("Join", "%s: the rendezvous has %d endpoints for %d ranks", label(g), len(all), g.Size)
	}
	if !bytes.Equal(all[g.Rank], mine) {
		return nil, d.fault("Join", "%s: another one has published as %s: each rank joins once in an epoch", label(g), g.Names[g.Rank])
	}
	var faults []string
	var first uint64
	for i, e := range all {
		key, err := keyOf(e)
		if err != nil {
			faults = append(faults, g.Names[i]+" "+err.Error())
		}
		if i == 0 {
			first = key
		}
	}
	if len(faults) > 0 {
		return nil, d.fault("Join", "%s: %s", label(g), strings.Join(faults, "; "))
	}
	m := open.get(first)
	if m == nil {
		return nil, d.unmet(g, g.Names[0]+" has given the group up: join the next epoch", errClosed)
	}
	return m, nil
}

func (d *device) unmet(g hal.Group, what string, cause error) error {
	return &hal.Error{Op: "Join", Device: d.name, Class: hal.Transient, Detail: label(g) + ": " + what, Err: cause}
}

// join takes the rank's place and waits until all have taken theirs: who returns may close at once and nobody comes too late.
func (m *meeting) join(ctx context.Context, g hal.Group, device string) error {
	if err := m.take(g, device); err != nil {
		return err
	}
	select {
	case <-m.full:
	case <-m.over:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.joined == m.group.Size: // whatever else came meanwhile
		return nil
	case m.ended == nil:
		err := m.missing(g, device, ctx.Err())
		m.endLocked(ending{class: hal.Aborted, what: g.Names[g.Rank] + " could not join", cause: err})
		return err
	default:
		return &hal.Error{Op: "Join", Device: device, Class: hal.Transient, Detail: label(g) + ": " + m.ended.what, Err: m.ended.cause}
	}
}

// missing names those who have published but not come.
func (m *meeting) missing(g hal.Group, device string, cause error) error {
	var absent []string
	for i := range m.members {
		if !m.members[i].joined {
			absent = append(absent, g.Names[i])
		}
	}
	return &hal.Error{Op: "Join", Device: device, Class: hal.Transient, Detail: label(g) + ": absent: " + strings.Join(absent, ", "), Err: cause}
}

// take marks the rank's place as taken; the last one to come takes the meeting out of the registry.
func (m *meeting) take(g hal.Group, device string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fault := func(what string) error {
		return &hal.Error{Op: "Join", Device: device, Class: hal.CallerFault, Detail: label(g) + ": " + what}
	}
	if g.Name != m.group.Name || g.Epoch != m.group.Epoch || g.Size != m.group.Size {
		return fault(fmt.Sprintf("%s of %d ranks is what %s made", label(m.group), m.group.Size, m.group.Names[0]))
	}
	p := &m.members[g.Rank]
	if p.joined {
		return fault(g.Names[g.Rank] + " has joined before")
	}
	p.joined, p.device = true, device
	if m.joined++; m.joined == m.group.Size {
		open.remove(m.token)
		close(m.full)
	}
	return nil
}

// end is endLocked for those without the lock.
func (m *meeting) end(why ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endLocked(why)
}

// close gives up a rank's place. If somebody waits for it the meeting ends.
func (m *meeting) close(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[rank].closed = true
	for i := range m.members {
		if p := &m.members[i]; p.state.Load() == waiting && p.call.meets(rank) {
			m.endLocked(m.closedBy(rank))
			return
		}
	}
}
