package sample

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestStopMatcher(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stops  []string
		pieces []string
		want   []string // emitted by each piece, then by Flush unless stopped
		stop   bool
	}{
		{"none", nil, []string{"ab", "cd"}, []string{"ab", "cd", ""}, false},
		{"inside a piece", []string{"X"}, []string{"abXcd"}, []string{"ab"}, true},
		{"across pieces", []string{"END"}, []string{"aE", "N", "Db"}, []string{"a", "", ""}, true},
		{"released", []string{"END"}, []string{"aE", "NE", "x"}, []string{"a", "EN", "Ex", ""}, false},
		{"held at the end", []string{"END"}, []string{"aEN"}, []string{"a", "EN"}, false},
		{"repeating prefix", []string{"aab"}, []string{"aaa", "a", "b"}, []string{"a", "a", ""}, true},
		{"first by start", []string{"lo", "hell"}, []string{"say hello"}, []string{"say "}, true},
		{"first complete ends", []string{"abcd", "bc"}, []string{"abc", "d"}, []string{"a"}, true},
		{"multibyte across pieces", []string{"é!"}, []string{"caf\xc3", "\xa9", "!x"}, []string{"caf", "", ""}, true},
		{"multibyte shown", []string{"。"}, []string{"是", "的。"}, []string{"是", "的"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewStopMatcher(tt.stops)
			var got []string
			stopped := false
			for _, p := range tt.pieces {
				if stopped {
					break
				}
				var emit string
				emit, stopped = m.Push(p)
				got = append(got, emit)
			}
			if !stopped {
				got = append(got, m.Flush())
			}
			if stopped != tt.stop || strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("emitted %q, stopped %v; want %q, %v", got, stopped, tt.want, tt.stop)
			}
		})
	}
}

func TestNothingAfterStop(t *testing.T) {
	m := NewStopMatcher([]string{"."})
	m.Push("a.b")
	if emit, stopped := m.Push("c"); emit != "" || !stopped || m.Flush() != "" {
		t.Errorf("after the stop: %q, %v", emit, stopped)
	}
}

// checkStops feeds text in pieces and compares with the definition: after each piece, the stop that starts first in all text
// so far ends the answer there; otherwise everything is shown in the end, and nothing that could still match before.
func checkStops(t *testing.T, stops []string, pieces []string) {
	t.Helper()
	m := NewStopMatcher(stops)
	whole, shown := "", ""
	for _, p := range pieces {
		whole += p
		emit, stopped := m.Push(p)
		shown += emit
		first := -1
		for _, s := range stops {
			if i := strings.Index(whole, s); i >= 0 && (first < 0 || i < first) {
				first = i
			}
		}
		if stopped != (first >= 0) {
			t.Fatalf("stops %q, pieces %q: stopped %v after %q", stops, pieces, stopped, whole)
		}
		if stopped {
			if shown != whole[:first] {
				t.Fatalf("stops %q, pieces %q: shown %q, want %q", stops, pieces, shown, whole[:first])
			}
			return
		}
		rest, ok := strings.CutPrefix(whole, shown)
		if !ok {
			t.Fatalf("stops %q, pieces %q: shown %q of %q", stops, pieces, shown, whole)
		}
		open := rest == ""
		for _, s := range stops {
			open = open || strings.HasPrefix(s, rest)
		}
		if !open {
			t.Fatalf("stops %q, pieces %q: %q held back, begins no stop", stops, pieces, rest)
		}
	}
	if shown += m.Flush(); shown != whole {
		t.Fatalf("stops %q, pieces %q: shown %q", stops, pieces, shown)
	}
}

func TestStopsAgainstDefinition(t *testing.T) {
	const seed = 99
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "é"}[r.IntN(3)])
		}
		return b.String()
	}
	for range 5000 {
		var stops, pieces []string
		for range r.IntN(4) {
			stops = append(stops, word(1+r.IntN(4)))
		}
		text := word(r.IntN(16))
		for text != "" {
			n := 1 + r.IntN(min(4, len(text)))
			pieces, text = append(pieces, text[:n]), text[n:]
		}
		checkStops(t, stops, pieces)
	}
}

func FuzzStops(f *testing.F) {
	f.Add("END", "a", "the ENd END", uint8(3))
	f.Add("é", "aé", "caféaé", uint8(1))
	f.Fuzz(func(t *testing.T, a, b, text string, step uint8) {
		if a == "" || b == "" || step == 0 {
			t.Skip()
		}
		var pieces []string
		for text != "" {
			n := min(int(step), len(text))
			pieces, text = append(pieces, text[:n]), text[n:]
		}
		checkStops(t, []string{a, b}, pieces)
	})
}
