// Package natstest runs a NATS server that listens on a free port of the loopback interface, for tests of what connects to one
// elsewhere. Only tests use it.
package natstest

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// patience is how long a server may take to start.
const patience = 10 * time.Second

// Server is a running server.
type Server struct {
	// URL of the server, the same after Restart. It holds no token.
	URL string

	t    testing.TB
	opts server.Options
	s    *server.Server
}

// Start starts a server that ends with the test. Who connects must show the token; empty: nothing.
func Start(t testing.TB, token string) *Server {
	t.Helper()
	s := &Server{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT,
		Authorization: token, NoSigs: true, NoLog: true, NoSystemAccount: true,
	}}
	s.run()
	t.Cleanup(s.Stop)
	s.opts.Port = s.s.Addr().(*net.TCPAddr).Port
	s.URL = "nats://" + net.JoinHostPort(s.opts.Host, strconv.Itoa(s.opts.Port))
	return s
}

func (s *Server) run() {
	s.t.Helper()
	opts := s.opts
	n, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	n.Start()
	if !n.ReadyForConnections(patience) {
		n.Shutdown()
		s.t.Fatalf("NATS server on %s is not ready after %s", s.URL, patience)
	}
	s.s = n
}

// Stop ends the server and waits for that. A second call does nothing.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// Restart starts the server again, on the same port, after Stop.
func (s *Server) Restart() {
	s.t.Helper()
	s.run()
}
