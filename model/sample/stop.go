package sample

import "strings"

// StopMatcher finds stop strings in text that arrives in pieces, across the borders of pieces. It holds text back only as
// long as its end may be the beginning of a stop string. As soon as a stop string is complete the answer ends; of those
// complete by then, the one that starts first counts. It belongs to one goroutine.
type StopMatcher struct {
	stops   []string
	held    string
	stopped bool
}

// NewStopMatcher makes a matcher for stops, which it keeps and only reads. Empty strings among them never match: whoever
// takes requests refuses them.
func NewStopMatcher(stops []string) *StopMatcher { return &StopMatcher{stops: stops} }

// Push adds text and returns what can be shown now. With stopped the answer is complete, emit is its last piece, and the
// stop string and everything behind it is dropped; later calls return nothing.
func (m *StopMatcher) Push(text string) (emit string, stopped bool) {
	if m.stopped {
		return "", true
	}
	m.held += text
	at := -1
	for _, s := range m.stops {
		if i := strings.Index(m.held, s); i >= 0 && s != "" && (at < 0 || i < at) {
			at = i
		}
	}
	if at >= 0 {
		emit, m.held, m.stopped = m.held[:at], "", true
		return emit, true
	}
	n := len(m.held) - m.open()
	emit, m.held = m.held[:n], m.held[n:]
	return emit, false
}

// open returns the length of the longest end of the held text that begins a stop string.
func (m *StopMatcher) open() int {
	longest := 0
	for _, s := range m.stops {
		for n := min(len(s)-1, len(m.held)); n > longest; n-- {
			if strings.HasSuffix(m.held, s[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}

// Flush returns the text still held back, which no stop string claims any more, and forgets it. It is called once, when
// the answer ends for another reason.
func (m *StopMatcher) Flush() string {
	out := m.held
	m.held = ""
	return out
}
