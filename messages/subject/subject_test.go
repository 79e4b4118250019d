package subject

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moerack/moerack/messages/bus"
)

// every returns all subjects of a space for the given names, by what made them.
func every(s Space, groups, nodes []string) map[string]string {
	all := map[string]string{"register": s.Register()}
	for _, k := range []Kind{Votes, Wake, Done, Progress, Ready} {
		all["coordinator "+string(k)] = s.Coordinator(k)
	}
	for _, g := range groups {
		all["plans "+g] = s.Plans(g)
		all["calls "+g] = s.Calls(g)
		all["endpoints "+g] = s.Endpoints(g)
		for _, n := range nodes {
			all["node "+g+" "+n] = s.Node(g, n)
		}
	}
	return all
}

func TestNames(t *testing.T) {
	s := Space{Cluster: "k3f9"}
	for _, tt := range []struct{ got, want string }{
		{s.Register(), "moerack.k3f9.register"},
		{s.Coordinator(Votes), "moerack.k3f9.coordinator.votes"},
		{s.Plans("ep"), "moerack.k3f9.plans.ep"},
		{s.Calls("dp0"), "moerack.k3f9.calls.dp0"},
		{s.Endpoints("ep"), "moerack.k3f9.endpoints.ep"},
		{s.Node("ep", "host-1.example"), "moerack.k3f9.node.ep.host-1=2eexample"},
		{s.Node("", " \t"), "moerack.k3f9.node.=.=20=09"},
		{Space{}.Plans(">"), "moerack.=.plans.=3e"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// awkward are names that would change the meaning of a subject if they were pasted into it, or that are near one another.
var awkward = []string{
	"", ".", "..", "*", ">", "a.b", "a.>", "a b", "a\tb", "a\r\nb", "a\x00b", "=", "=2e", "==", "$SYS", "_INBOX", "é", "e", "E", "\xff", "ep", "plans", "register",
	strings.Repeat("x", longest), strings.Repeat("x", longest+1), strings.Repeat("x", longest) + "y", strings.Repeat("é", 300),
}

func TestNoTwoAlike(t *testing.T) {
	made := map[string]string{}
	for _, cluster := range awkward {
		for what, s := range every(Space{Cluster: cluster}, awkward, awkward) {
			what = "cluster " + cluster + ": " + what
			if other, ok := made[s]; ok {
				t.Errorf("%q and %q are both %s", what, other, s)
			}
			made[s] = what
			if err := bus.CheckSubject(s); err != nil {
				t.Errorf("%q: %v", what, err)
			}
		}
	}
}

func TestEncodeIsInjective(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	names := map[string]string{}
	for range 20000 {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = "=2eE.*> a-_\x00\xff"[r.IntN(12)]
		}
		token := encode(string(b))
		if former, ok := names[token]; ok && former != string(b) {
			t.Fatalf("%q and %q are both %s", former, b, token)
		}
		names[token] = string(b)
	}
}

func FuzzEncode(f *testing.F) {
	for _, name := range awkward {
		f.Add(name, "")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		s := Space{Cluster: a}.Node(a, b)
		if err := bus.CheckSubject(s); err != nil {
			t.Error(err)
		}
		if n := strings.Count(s, "."); n != 4 {
			t.Errorf("%s has %d dots, want 4", s, n)
		}
		if a != b && encode(a) == encode(b) {
			t.Errorf("%q and %q are both %s", a, b, encode(a))
		}
	})
}
