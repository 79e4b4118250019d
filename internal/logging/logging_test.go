package logging

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTextLineIsPlainWithoutColor(t *testing.T) {
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		log, err := New(&out, Options{Level: slog.LevelWarn, Format: Text, Color: color})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("dropped")
		log.Warn("unused tensors", "count", 3)
		line := out.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, "unused tensors") {
			t.Errorf("color %v: want one line of the warning, got %q", color, line)
		}
		if got := strings.Contains(line, "\x1b["); got != color {
			t.Errorf("color %v: escape sequences %v in %q", color, got, line)
		}
	}
}

func TestJSONLine(t *testing.T) {
	var out bytes.Buffer
	log, err := New(&out, Options{Level: slog.LevelInfo, Format: JSON})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("node ready", "rank", 0)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if line["msg"] != "node ready" || line["rank"] != 0.0 || line["level"] != "INFO" {
		t.Errorf("line %v", line)
	}
}

func TestUnknownFormatAndLevelNameTheLegalOnes(t *testing.T) {
	if _, err := New(&bytes.Buffer{}, Options{Format: "xml"}); err == nil || !strings.Contains(err.Error(), `"xml": use text or json`) {
		t.Errorf("format: %v", err)
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), `"loud": use debug, info, warn or error`) {
		t.Errorf("level: %v", err)
	}
	for name, want := range map[string]slog.Level{"debug": slog.LevelDebug, "INFO": slog.LevelInfo, "Warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := ParseLevel(name); err != nil || got != want {
			t.Errorf("level %s: %v, %v", name, got, err)
		}
	}
}

func TestNoColorOffTerminal(t *testing.T) {
	none := func(string) string { return "" }
	if Color(&bytes.Buffer{}, none) {
		t.Error("a buffer is no terminal")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Color(f, none) {
		t.Error("a file is no terminal")
	}
}
