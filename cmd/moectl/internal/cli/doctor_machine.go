package cli

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/moerack/moerack/hal"
)

// machine adds what this host offers.
func (r *report) machine(backends []Backend) {
	r.addf(good, "platform", "%s/%s, %s, %d cores, %d threads for Go", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), runtime.GOMAXPROCS(0))
	r.addf(good, "cpu features", "%s", orNone(cpuFeatures()))
	for _, b := range backends {
		r.device(b)
	}
}

// device opens a backend's first device and adds what it says of itself.
func (r *report) device(b Backend) {
	subject := "backend " + b.Name
	device, err := b.Open(0, Compute{Ranks: 1})
	if err != nil {
		r.addf(broken, subject, "%v", err)
		return
	}
	d := device.Describe()
	r.addf(good, subject, "device %s: %s, %d cores", d.Name, d.Model, d.Cores)
	for _, line := range kernelLines(d.Kernels) {
		r.addf(good, "kernels", "%s", line)
	}
	if memory, err := device.Memory(); err != nil {
		r.addf(notice, "memory", "%v", err)
	} else {
		r.addf(good, "memory", "%s free of %s", size(memory.Free), size(memory.Total))
	}
	if err := device.Close(); err != nil {
		r.addf(broken, subject, "close: %v", err)
	}
}

// kernelLines puts the ops that one implementation serves for one reason on one line.
func kernelLines(kernels []hal.Kernel) []string {
	type choice struct{ impl, why string }
	ops := map[choice][]string{}
	var order []choice
	for _, k := range kernels {
		c := choice{k.Impl, k.Why}
		if ops[c] == nil {
			order = append(order, c)
		}
		ops[c] = append(ops[c], k.Op)
	}
	lines := make([]string, len(order))
	for i, c := range order {
		lines[i] = fmt.Sprintf("%s: %s (%s)", c.impl, strings.Join(ops[c], " "), c.why)
	}
	return lines
}

// cpuFeatures are the vector features of this processor that kernels ask for.
func cpuFeatures() []string {
	var names []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"sse4.1", cpu.X86.HasSSE41},
		{"avx", cpu.X86.HasAVX},
		{"avx2", cpu.X86.HasAVX2},
		{"fma", cpu.X86.HasFMA},
		{"avx512f", cpu.X86.HasAVX512F},
		{"avx512bw", cpu.X86.HasAVX512BW},
		{"avx512vl", cpu.X86.HasAVX512VL},
		{"avx512vnni", cpu.X86.HasAVX512VNNI},
		{"avx512bf16", cpu.X86.HasAVX512BF16},
		{"avxvnni", cpu.X86.HasAVXVNNI},
		{"amx-tile", cpu.X86.HasAMXTile},
		{"amx-int8", cpu.X86.HasAMXInt8},
		{"amx-bf16", cpu.X86.HasAMXBF16},
		{"asimd", cpu.ARM64.HasASIMD},
		{"asimddp", cpu.ARM64.HasASIMDDP},
		{"sve", cpu.ARM64.HasSVE},
		{"sve2", cpu.ARM64.HasSVE2},
		{"i8mm", cpu.ARM64.HasI8MM},
	} {
		if f.has {
			names = append(names, f.name)
		}
	}
	return names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none known"
	}
	return strings.Join(names, " ")
}

// size writes bytes with the unit that leaves one to four digits before the point.
func size(bytes int64) string {
	const units = "KMGTP"
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for ; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}
