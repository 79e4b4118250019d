package natsbus

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage holds that a lost connection is in the log until it is back, and how long it has been away; and that a bus which is closed
// has nothing more to say.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // the connection was lost
		end   func(*outage)
		away  []string // in the reminders
		last  string
	}{
		{"back at once", time.Second, func(o *outage) { o.end("n1") }, nil, `"bus is connected again" server=n1 away=1s`},
		{"back late", 95 * time.Second, func(o *outage) { o.end("n1") }, []string{"30s", "1m0s", "1m30s"}, `"bus is connected again" server=n1 away=1m35s`},
		{"closed meanwhile", 65 * time.Second, (*outage).forget, []string{"30s", "1m0s"}, ""},
		{"closed before", 0, func(o *outage) { o.forget(); o.begin(nil); o.end("n1") }, nil, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			o := outage{log: slog.New(slog.NewTextHandler(&log, nil))}
			wait := func(d time.Duration) {
				<-time.After(d)
				synctest.Wait()
			}
			if c.after > 0 {
				o.begin(errors.New("broken pipe"))
				o.begin(errors.New("refused")) // an attempt that failed on the way
				wait(c.after)
			}
			c.end(&o)
			wait(time.Hour)
			for _, away := range c.away {
				if want := "Ctrl-C)\" away=" + away + "\n"; !strings.Contains(log.String(), want) {
					t.Errorf("%s: no %q in\n%s", c.name, want, &log)
				}
			}
			if n := strings.Count(log.String(), "still without"); n != len(c.away) {
				t.Errorf("%s: %d reminders, want %d:\n%s", c.name, n, len(c.away), &log)
			}
			if n := strings.Count(log.String(), "connected again"); !strings.Contains(log.String(), c.last) || n > 0 != (c.last != "") {
				t.Errorf("%s: want %q in\n%s", c.name, c.last, &log)
			}
		})
	}
}
