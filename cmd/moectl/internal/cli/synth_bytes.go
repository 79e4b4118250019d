package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the endings of a size, the longer ones before those that they end in.
var byteUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// parseBytes reads a size such as 5GB, 512MiB or 1000. It must be at least one byte.
func parseBytes(text string) (int64, error) {
	for _, unit := range byteUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/unit.bytes {
			break
		}
		return n * unit.bytes, nil
	}
	return 0, errors.New("must be a whole number above 0 of bytes, KB, MB, GB, KiB, MiB or GiB, such as 5GB")
}
