package natsbus

import (
	"log/slog"
	"sync"
	"time"
)

// reminder is how often the log says again that the connection is gone.
const reminder = 30 * time.Second

// outage keeps the log informed of a connection that is gone: when it goes, every so often while it stays away, and when it is back.
// It logs without its lock, as a log may block.
type outage struct {
	log *slog.Logger

	mu    sync.Mutex // guards the fields below
	since time.Time  // with timer
	timer *time.Timer
	away  bool
	over  bool // nobody wants to read of it any more
}

// begin takes that the connection is gone.
func (o *outage) begin(cause error) {
	o.mu.Lock()
	over := o.over
	o.away = !over
	if !over && o.timer == nil {
		o.since = time.Now()
		o.timer = time.AfterFunc(reminder, o.remind)
	}
	o.mu.Unlock()
	if !over {
		o.log.Warn("bus lost its connection and tries to get it back", "error", cause)
	}
}

// on reports whether the connection is gone, as far as is known; not of a bus that is being closed.
func (o *outage) on() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away
}

// remind says that the connection is still gone.
func (o *outage) remind() {
	o.mu.Lock()
	away, gone := time.Since(o.since), o.timer != nil
	if gone {
		o.timer.Reset(reminder)
	}
	o.mu.Unlock()
	if gone {
		o.log.Warn("bus is still without a connection: start the server again, or end this process (Ctrl-C)", "away", away.Round(time.Second))
	}
}

// end takes that the connection is back, with a server of this name.
func (o *outage) end(server string) {
	o.mu.Lock()
	away, gone := time.Since(o.since), o.timer != nil
	o.away = false
	o.stop()
	o.mu.Unlock()
	if gone {
		o.log.Info("bus is connected again", "server", server, "away", away.Round(time.Millisecond))
	}
}

// forget ends the reports for good: the bus is being closed.
func (o *outage) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.away = true, false
	o.stop()
}

// stop ends the reminders; o.mu is held.
func (o *outage) stop() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}
