// Package logging makes the logger of a command: coloured text for people, JSON for services. It owns how a log line looks;
// it sets no default logger and decides nothing about what is logged.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// The formats, as --log-format spells them.
const (
	Text = "text"
	JSON = "json"
)

// Options say how log lines look and which are written.
type Options struct {
	Level  slog.Level // lines below it are dropped
	Format string     // Text or JSON
	Color  bool       // escape sequences in text lines; see Color
}

// New returns a logger that writes one line a record to w. It refuses a format it does not know.
func New(w io.Writer, o Options) (*slog.Logger, error) {
	switch o.Format {
	case Text:
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: o.Level, TimeFormat: time.TimeOnly, NoColor: !o.Color})), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level})), nil
	default:
		return nil, fmt.Errorf("log format %q: use %s or %s", o.Format, Text, JSON)
	}
}

// ParseLevel reads a level's name in any case.
func ParseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("log level %q: use debug, info, warn or error", name)
	}
}

// Color reports whether text written to w may be coloured: w is a terminal that knows colours, and NO_COLOR is not set
// (no-color.org).
func Color(w io.Writer, getenv func(string) string) bool {
	f, ok := w.(*os.File)
	return ok && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
