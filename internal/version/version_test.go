package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestFrom(t *testing.T) {
	const revision = "3f2a9c1d04be7788990011223344556677889900"
	platform := runtime.GOOS + "/" + runtime.GOARCH
	tests := []struct {
		name  string
		build debug.BuildInfo
		want  Info
		line  string
	}{
		{
			name:  "release",
			build: debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: modulePath, Version: "v0.3.1"}},
			want:  Info{Version: "v0.3.1", GoVersion: "go1.26.8", Platform: platform},
			line:  "v0.3.1 go1.26.8 " + platform,
		},
		{
			name: "working tree with changes",
			build: debug.BuildInfo{
				GoVersion: "go1.26.8",
				Main:      debug.Module{Path: modulePath, Version: "(devel)"},
				Settings:  []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}},
			},
			want: Info{Version: "devel", Revision: revision, Modified: true, GoVersion: "go1.26.8", Platform: platform},
			line: "devel (3f2a9c1d04be, modified) go1.26.8 " + platform,
		},
		{
			name: "clean commit, short revision",
			build: debug.BuildInfo{
				GoVersion: "go1.26.8",
				Main:      debug.Module{Path: modulePath},
				Settings:  []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
			},
			want: Info{Version: "devel", Revision: "abc", GoVersion: "go1.26.8", Platform: platform},
			line: "devel (abc) go1.26.8 " + platform,
		},
		{
			name: "embedded in another program: its commit is not ours",
			build: debug.BuildInfo{
				GoVersion: "go1.26.8",
				Main:      debug.Module{Path: "example.com/service", Version: "v9.0.0"},
				Deps:      []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"}, {Path: modulePath, Version: "v0.3.1"}},
				Settings:  []debug.BuildSetting{{Key: "vcs.revision", Value: revision}},
			},
			want: Info{Version: "v0.3.1", GoVersion: "go1.26.8", Platform: platform},
			line: "v0.3.1 go1.26.8 " + platform,
		},
		{
			name: "nothing recorded",
			want: Info{Version: "devel", GoVersion: runtime.Version(), Platform: platform},
			line: "devel " + runtime.Version() + " " + platform,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := from(&test.build)
			if got != test.want {
				t.Errorf("from = %+v, want %+v", got, test.want)
			}
			if line := got.String(); line != test.line {
				t.Errorf("String = %q, want %q", line, test.line)
			}
		})
	}
}

func TestGetDescribesThisBinary(t *testing.T) {
	info := Get()
	if info.GoVersion != runtime.Version() {
		t.Errorf("GoVersion = %q, want %q", info.GoVersion, runtime.Version())
	}
	if info.Version == "" {
		t.Error("Version is empty, want a version or devel")
	}
}
