package cpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moerack/moerack/hal"
)

// limited lowers m to what the process's control group allows: in a container the host's memory is not ours. root is where
// control groups are mounted, self the text of /proc/self/cgroup. Files that are not there limit nothing.
func limited(m hal.Memory, root, self string) hal.Memory {
	group := ""
	for line := range strings.Lines(self) { // version 2 has one line, "0::/path"
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = path
		}
	}
	for _, g := range []struct{ dir, limit, used, cache string }{
		{filepath.Join(root, group), "memory.max", "memory.current", "inactive_file "},
		{root, "memory.max", "memory.current", "inactive_file "}, // inside a namespace the path is another's
		{filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
	} {
		limit, ok := number(filepath.Join(g.dir, g.limit))
		if !ok {
			continue // not there, or "max"
		}
		used, _ := number(filepath.Join(g.dir, g.used))
		free := limit - used + reclaimable(filepath.Join(g.dir, "memory.stat"), g.cache)
		m.Total = min(m.Total, limit)
		m.Free = min(m.Free, max(free, 0), m.Total)
	}
	return m
}

func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// reclaimable returns the page cache that the kernel gives back before it refuses memory.
func reclaimable(file, key string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
