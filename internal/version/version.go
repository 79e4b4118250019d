// Package version says which build of the module is running, from what the linker recorded in the binary.
//
// It sets nothing at link time and asks no tool; a build without version control information says so.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Info describes a build.
type Info struct {
	Version   string `json:"version"`    // module version, or "devel" for a build from a working tree
	Revision  string `json:"revision"`   // commit the binary was built from; "" if it was not recorded
	Modified  bool   `json:"modified"`   // the working tree had changes that are not in Revision
	GoVersion string `json:"go_version"` // toolchain, as in "go1.26.8"
	Platform  string `json:"platform"`   // "GOOS/GOARCH"
}

// modulePath is the module whose version is reported, also when it is a dependency of the running binary.
const modulePath = "github.com/moerack/moerack"

// Get returns the build that is running.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(build)
}

// from reads build. Revision and Modified belong to the main module, so they stay zero when ours is only a dependency.
func from(build *debug.BuildInfo) Info {
	info := Info{Version: "devel", GoVersion: build.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info.GoVersion == "" {
		info.GoVersion = runtime.Version()
	}
	if build.Main.Path != modulePath {
		for _, dep := range build.Deps {
			if dep.Path == modulePath {
				info.Version = tidy(dep.Version)
			}
		}
		return info
	}
	info.Version = tidy(build.Main.Version)
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// tidy turns the linker's words for "no version" into one.
func tidy(v string) string {
	if v == "" || v == "(devel)" {
		return "devel"
	}
	return v
}

// String returns one line, as in "devel (3f2a9c1d04be, modified) go1.26.8 linux/amd64".
func (i Info) String() string {
	var b strings.Builder
	b.WriteString(i.Version)
	if i.Revision != "" {
		b.WriteString(" (" + i.Revision[:min(12, len(i.Revision))])
		if i.Modified {
			b.WriteString(", modified")
		}
		b.WriteString(")")
	}
	b.WriteString(" " + i.GoVersion + " " + i.Platform)
	return b.String()
}
