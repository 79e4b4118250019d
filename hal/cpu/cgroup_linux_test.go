package cpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moerack/moerack/hal"
)

func TestControlGroupLimitsMemory(t *testing.T) {
	host := hal.Memory{Free: 8000, Total: 10000}
	for _, tt := range []struct {
		name  string
		files map[string]string
		self  string
		want  hal.Memory
	}{
		{"none", nil, "", host},
		{"version 2 without a limit", map[string]string{"memory.max": "max\n", "memory.current": "500\n"}, "0::/\n", host},
		{"version 2", map[string]string{"memory.max": "4000\n", "memory.current": "1500\n", "memory.stat": "anon 700\ninactive_file 600\n"}, "0::/\n", hal.Memory{Free: 3100, Total: 4000}},
		{"version 2, a group of its own", map[string]string{"a/b/memory.max": "4000\n", "a/b/memory.current": "1000\n"}, "0::/a/b\n", hal.Memory{Free: 3000, Total: 4000}},
		{"more in use than allowed", map[string]string{"memory.max": "4000\n", "memory.current": "5000\n"}, "0::/\n", hal.Memory{Free: 0, Total: 4000}},
		{"above the host's", map[string]string{"memory.max": "90000\n", "memory.current": "10\n"}, "0::/\n", host},
		{"version 1", map[string]string{"memory/memory.limit_in_bytes": "4000\n", "memory/memory.usage_in_bytes": "1000\n", "memory/memory.stat": "total_inactive_file 100\n"}, "5:memory:/x\n", hal.Memory{Free: 3100, Total: 4000}},
	} {
		root := t.TempDir()
		for name, text := range tt.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := limited(host, root, tt.self); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
