package messagesv1

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/wire.txt anew; a changed line breaks nodes of other versions")

// examples has one message of each kind with every field set, in the order of the files.
func examples() []Message {
	failure := &Failure{Rank: 5, Node: "b", Step: 41, Op: "a2e", Layer: -1, Text: "lost"}
	return []Message{
		&Votes{
			Group: "ep", Term: 1, Epoch: 2, Wave: 3, Step: 4, Node: "a", Missing: []uint32{2, 3},
			Votes: []*Vote{{Engine: 1, Rows: 7, Drain: true, Queue: 8}, {Engine: 4}},
		},
		&Plan{
			Group: "ep", Term: 1, Epoch: 2, Wave: 3, Step: 4, Action: Action_ACTION_RUN, Members: []uint32{0, 300}, Rows: []uint32{7, 0},
			Drain: []bool{true, false}, PadTo: 8, Exchange: Exchange_EXCHANGE_ALLGATHER, Stages: 1, Hash: 1 << 63,
		},
		&Done{Group: "ep", Term: 1, Epoch: 2, Step: 4, Node: "a", Failure: failure},
		&Wake{Group: "dp0", Wave: 3, Node: "a", Engines: []uint32{0, 1}, Term: 1, Epoch: 2},
		&Call{Group: "ep", Term: 1, Epoch: 2, Wave: 3, Step: 4, Members: []uint32{0, 1}, Cause: failure},
		&Progress{
			Group: "ep", Term: 1, Epoch: 2, Node: "a",
			Ranks: []*RankProgress{{Rank: 1, Step: 4, Index: 9, Op: "combine", Layer: 2, Stage: 1, Running: true, Waiting: true, Moves: 1000}},
		},
		&Register{Protocol: 1, Node: "a", Host: "h", Devices: 8, FirstEngine: 2, Engines: 4, Fingerprint: []byte{0xca, 0xfe}},
		&Registered{Assignments: []*Assignment{{Rank: 3, Device: 1, Node: "b"}}, Refusal: "no", Absent: []uint32{1, 2}},
		&Endpoints{Group: "ep", Kind: "tp0", Epoch: 2, Node: "a", Complete: true, Endpoints: []*Endpoint{{Rank: 1, Data: []byte("x")}}},
		&Ready{Group: "ep", Epoch: 2, Node: "a", Ranks: []uint32{0, 1}, Failure: failure},
	}
}

// TestWire holds the bytes of every field to what was sent before.
func TestWire(t *testing.T) {
	var got strings.Builder
	for _, m := range examples() {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(string(m.ProtoReflect().Descriptor().Name()) + " " + hex.EncodeToString(data) + "\n")
	}
	path := filepath.Join("testdata", "wire.txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the wire format has changed; nodes of other versions would not understand it:\n%s", got.String())
	}
	for i, line := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		_, text, _ := strings.Cut(line, " ")
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		example := examples()[i]
		m := example.ProtoReflect().New().Interface().(Message)
		if err := Decode(data, m); err != nil {
			t.Error(err)
		}
		if !proto.Equal(m, example) {
			t.Errorf("got %v, want %v", m, example)
		}
	}
}

// TestExamplesSetEveryField makes TestWire cover a field that is added.
func TestExamplesSetEveryField(t *testing.T) {
	kinds := File_moerack_v1_step_proto.Messages().Len() + File_moerack_v1_progress_proto.Messages().Len() +
		File_moerack_v1_node_proto.Messages().Len() + File_moerack_v1_rendezvous_proto.Messages().Len()
	seen := map[string]bool{}
	for _, m := range examples() {
		everyField(t, m, seen)
	}
	if len(seen) != kinds {
		t.Errorf("the examples have %d kinds of messages, there are %d", len(seen), kinds)
	}
}

func everyField(t *testing.T, m proto.Message, seen map[string]bool) {
	t.Helper()
	r := m.ProtoReflect()
	name := string(r.Descriptor().Name())
	if seen[name] {
		return // the first of a kind has all
	}
	seen[name] = true
	for i := range r.Descriptor().Fields().Len() {
		f := r.Descriptor().Fields().Get(i)
		switch {
		case !r.Has(f):
			t.Errorf("%s has no %s", name, f.Name())
		case f.Message() != nil && f.IsList():
			everyField(t, r.Get(f).List().Get(0).Message().Interface(), seen)
		case f.Message() != nil:
			everyField(t, r.Get(f).Message().Interface(), seen)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	plan := func(change func(p *Plan)) *Plan {
		p := examples()[1].(*Plan)
		change(p)
		return p
	}
	for _, tt := range []struct {
		m    Message
		want string
	}{
		{&Votes{Node: "a"}, "group has no name"},
		{&Votes{Group: "ep"}, "node has no name"},
		{&Votes{Group: "ep", Node: "a", Votes: []*Vote{{Engine: 1}, {Engine: 1}}}, "votes' engines are not ascending: 1 is followed by 1"},
		{&Votes{Group: "ep", Node: "a", Missing: []uint32{2, 1}}, "missing engines are not ascending"},
		{plan(func(p *Plan) { p.Group = "" }), "group has no name"},
		{plan(func(p *Plan) { p.Members = []uint32{1, 0} }), "members are not ascending"},
		{plan(func(p *Plan) { p.Rows = p.Rows[:1] }), "2 members have 1 rows and 2 drain wishes"},
		{plan(func(p *Plan) { p.Drain = nil }), "2 members have 2 rows and 0 drain wishes"},
		{plan(func(p *Plan) { p.Members, p.Rows, p.Drain = nil, nil, nil }), "0 members"},
		{plan(func(p *Plan) { p.Action = 0 }), "action 0 is unknown"},
		{plan(func(p *Plan) { p.Action = 3 }), "action 3 is unknown"},
		{plan(func(p *Plan) { p.Exchange = 0 }), "exchange 0 is unknown"},
		{plan(func(p *Plan) { p.Exchange = 3 }), "exchange 3 is unknown"},
		{plan(func(p *Plan) { p.Stages = 0 }), "no stages"},
		{plan(func(p *Plan) { p.PadTo = 6 }), "engine 0 has 7 rows, above the 6"},
		{&Done{Group: "ep"}, "node has no name"},
		{&Wake{Group: "ep", Node: "a", Engines: []uint32{1, 1}}, "engines are not ascending"},
		{&Call{Group: "ep", Members: []uint32{1, 1}}, "members are not ascending"},
		{&Progress{Group: "ep", Node: "a", Ranks: []*RankProgress{{Rank: 1}, {Rank: 0}}}, "ranks are not ascending"},
		{&Register{Node: "a"}, "both need a name"},
		{&Register{Node: "a", Host: "h", FirstEngine: 1<<32 - 1, Engines: 2}, "do not fit"},
		{&Registered{Absent: []uint32{3, 2}}, "absent engines are not ascending"},
		{&Endpoints{Group: "ep", Node: "a", Endpoints: []*Endpoint{{}, {}}}, "endpoints' ranks are not ascending"},
		{&Ready{Group: "ep"}, "node has no name"},
	} {
		data, err := proto.Marshal(tt.m)
		if err != nil {
			t.Fatal(err)
		}
		name := string(tt.m.ProtoReflect().Descriptor().Name())
		err = Decode(data, tt.m.ProtoReflect().New().Interface().(Message))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: got %v, want %q and the message's name", tt.m, err, tt.want)
		}
	}
	park := plan(func(p *Plan) { p.Action, p.Exchange, p.Stages, p.PadTo = Action_ACTION_PARK, 0, 0, 0 })
	if err := park.Validate(); err != nil {
		t.Errorf("a park without what only a run needs: %v", err)
	}
}

// FuzzDecode holds that junk is refused, not followed: what Decode takes can be written and read again, and a plan's lists can be
// indexed alike.
func FuzzDecode(f *testing.F) {
	for i, m := range examples() {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)
		f.Add(uint8(i+1), data)
		f.Add(uint8(i), data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		all := examples()
		m := all[int(kind)%len(all)].ProtoReflect().New().Interface().(Message)
		if Decode(data, m) != nil {
			return
		}
		if p, ok := m.(*Plan); ok && (len(p.GetRows()) != len(p.GetMembers()) || len(p.GetDrain()) != len(p.GetMembers())) {
			t.Errorf("%v passed", p)
		}
		once, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again := m.ProtoReflect().New().Interface().(Message)
		if err := Decode(once, again); err != nil {
			t.Fatal(err)
		}
		twice, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%v became %v, %v", m, again, err)
		}
	})
}
