package cli

import (
	"fmt"
	"sync"
)

// maxCauses bounds how many errors are remembered; of those past it every request is named.
const maxCauses = 100

// failures keeps what requests ended with, so that an error which ends many is told once. The zero value is ready; its methods may be
// called from any goroutine.
type failures struct {
	mu     sync.Mutex // guards causes
	causes []cause
}

// cause is an error that ended requests.
type cause struct {
	text  string
	first string // the request that was told
	count int
}

// add takes that err ended the request called where, and returns what to tell, nil if it has been told.
func (f *failures) add(where string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := err.Error()
	for i := range f.causes {
		if c := &f.causes[i]; c.text == text {
			c.count++
			return nil
		}
	}
	if len(f.causes) < maxCauses {
		f.causes = append(f.causes, cause{text, where, 1})
	}
	return fmt.Errorf("%s: %w", where, err)
}

// sums says of each error that ended more than one request how many it ended, as in "3 requests ended as prompt 0 (--prompt) did".
func (f *failures) sums() (list []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.causes {
		if c.count > 1 {
			list = append(list, fmt.Errorf("%d requests in all ended as %s did", c.count, c.first))
		}
	}
	return list
}
