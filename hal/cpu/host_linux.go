package cpu

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moerack/moerack/hal"
)

// memory reads /proc/meminfo, where MemAvailable counts what can be had without swapping, page cache included, and the limits of
// the process's control group.
func memory() (hal.Memory, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return hal.Memory{}, err
	}
	defer func() { _ = f.Close() }() // read only
	var m hal.Memory
	for s := bufio.NewScanner(f); s.Scan(); {
		key, rest, _ := strings.Cut(s.Text(), ":")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch {
		case err != nil:
		case key == "MemAvailable":
			m.Free = kb << 10
		case key == "MemTotal":
			m.Total = kb << 10
		}
	}
	if m.Free == 0 || m.Total == 0 {
		return hal.Memory{}, fmt.Errorf("/proc/meminfo has no MemAvailable or MemTotal")
	}
	self, _ := os.ReadFile("/proc/self/cgroup") // without it only the mount's root counts
	return limited(m, "/sys/fs/cgroup", string(self)), nil
}

// processor returns the model name of the first processor.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer func() { _ = f.Close() }() // read only
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown processor"
}
