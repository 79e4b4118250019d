package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/moerack/moerack/messages/bus"
)

// Server is a NATS server inside the process. It opens no port, writes no file and takes no signal.
type Server struct {
	s   *server.Server
	end sync.Once
}

// Embed starts a server; of o it uses Name, Logger and Wait. Close ends it.
func Embed(o Options) (*Server, error) {
	o = o.withDefaults()
	s, err := server.NewServer(&server.Options{
		ServerName:            strings.Join(strings.Fields(o.Name), "-"),
		DontListen:            true,
		NoSigs:                true,
		NoLog:                 true, // the library's own; ours is set below
		NoSystemAccount:       true, // it would send statistics that nobody reads
		DisableShortFirstPing: true,
	})
	if err != nil {
		return nil, fmt.Errorf("natsbus: start a server in the process: %w", err)
	}
	s.SetLoggerV2(&logger{o.Logger}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(o.Wait) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("natsbus: start a server in the process: not ready after %s: the machine is overloaded, or Wait is too short", o.Wait)
	}
	return &Server{s: s}, nil
}

// Connect makes a bus on the server; of o it uses Name, Logger and Wait. Close it before the server.
func (s *Server) Connect(ctx context.Context, o Options) (*Bus, error) {
	o = o.withDefaults()
	o.Ping = LongestPing
	b, err := connect(ctx, o, bus.NATSInProc, newDialer(o.Wait), "", nats.InProcessServer(s.s))
	if err != nil {
		return nil, fmt.Errorf("natsbus: connect to the server in the process: %w", err)
	}
	return b, nil
}

// Traffic returns how many messages the server has taken from buses and how many it has handed to them.
func (s *Server) Traffic() (in, out uint64, err error) {
	v, err := s.s.Varz(nil)
	if err != nil {
		return 0, 0, fmt.Errorf("natsbus: count messages: %w", err)
	}
	if v.InMsgs < 0 || v.OutMsgs < 0 {
		return 0, 0, errors.New("natsbus: count messages: the server counts below zero")
	}
	return uint64(v.InMsgs), uint64(v.OutMsgs), nil
}

// Close ends the server and waits for that. Buses that are still connected lose their connection. A second call waits as well.
func (s *Server) Close() {
	s.end.Do(s.s.Shutdown)
	s.s.WaitForShutdown()
}

// logger hands what the server says to ours. Its messages are texts, so that they are an attribute here.
type logger struct{ log *slog.Logger }

// Noticef takes what happens at every start.
func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug("nats server", "text", fmt.Sprintf(format, v...))
}

// Warnf takes a warning.
func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn("nats server", "text", fmt.Sprintf(format, v...))
}

// Fatalf takes what ends the server.
func (l *logger) Fatalf(format string, v ...any) {
	l.log.Error("nats server", "text", fmt.Sprintf(format, v...))
}

// Errorf takes an error.
func (l *logger) Errorf(format string, v ...any) {
	l.log.Error("nats server", "text", fmt.Sprintf(format, v...))
}

// Debugf is not called: debugging is off.
func (l *logger) Debugf(format string, v ...any) {
	l.log.Debug("nats server", "text", fmt.Sprintf(format, v...))
}

// Tracef is not called: tracing is off.
func (l *logger) Tracef(format string, v ...any) {
	l.log.Debug("nats server", "text", fmt.Sprintf(format, v...))
}
