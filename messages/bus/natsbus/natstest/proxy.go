package natstest

import (
	"net"
	"sync"
	"testing"
)

// Proxy stands between buses and a server, and can make the server look frozen: connections are taken and stay open, and nothing passes.
type Proxy struct {
	// URL that buses connect to.
	URL string

	listener net.Listener
	target   string // address of the server

	mu     sync.Mutex // guards the fields below
	change *sync.Cond // of frozen and ended
	frozen bool
	ended  bool
	conns  []net.Conn
}

// StartProxy starts a proxy of the server that ends with the test.
func (s *Server) StartProxy(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: "nats://" + l.Addr().String(), listener: l, target: s.s.Addr().String()}
	p.change = sync.NewCond(&p.mu)
	var all sync.WaitGroup
	all.Go(func() { p.accept(&all) })
	t.Cleanup(func() {
		p.end()
		all.Wait()
	})
	return p
}

// Freeze lets nothing pass until Thaw.
func (p *Proxy) Freeze() { p.set(true) }

// Thaw lets everything pass again, what has come meanwhile first.
func (p *Proxy) Thaw() { p.set(false) }

func (p *Proxy) set(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
	p.change.Broadcast()
}

func (p *Proxy) end() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.change.Broadcast()
}

// accept connects who comes with the server, until the listener is closed.
func (p *Proxy) accept(all *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil { // it has stopped
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		ended := p.ended
		p.mu.Unlock()
		if ended {
			_, _ = client.Close(), server.Close()
			return
		}
		all.Go(func() { p.pass(client, server) })
		all.Go(func() { p.pass(server, client) })
	}
}

// pass copies one direction, as far as the proxy lets it, until an end is closed; then it closes both.
func (p *Proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	for part := make([]byte, 4096); ; {
		n, err := from.Read(part)
		p.wait()
		if _, werr := to.Write(part[:n]); werr != nil || err != nil {
			return
		}
	}
}

// wait returns when things may pass, or the proxy has ended.
func (p *Proxy) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.ended {
		p.change.Wait()
	}
}
