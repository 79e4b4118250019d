package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
)

const models = "../../test/models"

// keys are changes to a configuration: a value to set, or gone to remove the key.
type keys map[string]any

type gone struct{}

// raw is a value written as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// changed writes the configuration of a test model with changes into a new
// directory, without generation_config.json.
func changed(t *testing.T, model string, changes keys) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(models, model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&values); err != nil {
		t.Fatal(err)
	}
	for k, v := range changes {
		if _, remove := v.(gone); remove {
			delete(values, k)
		} else {
			values[k] = v
		}
	}
	dir := t.TempDir()
	writeJSON(t, dir, "config.json", values)
	return dir
}

func writeJSON(t *testing.T, dir, name string, v any) {
	t.Helper()
	// By hand: json.Marshal would rewrite raw numbers such as 4e1.
	var out bytes.Buffer
	if m, ok := v.(map[string]any); ok {
		out.WriteByte('{')
		for k, e := range m {
			if out.Len() > 1 {
				out.WriteByte(',')
			}
			value, isRaw := e.(raw)
			if !isRaw {
				data, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				value = raw(data)
			}
			key, _ := json.Marshal(k)
			out.Write(key)
			out.WriteString(":" + string(value))
		}
		out.WriteByte('}')
	} else if s, ok := v.(string); ok {
		out.WriteString(s)
	}
	write(t, filepath.Join(dir, name), out.String())
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, dir string) *config.Config {
	t.Helper()
	c, err := config.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustRefuse requires an error with all the words and a nil configuration.
func mustRefuse(t *testing.T, dir string, words ...string) error {
	t.Helper()
	c, err := config.Load(dir)
	if err == nil {
		t.Fatalf("loaded, want a refusal that holds %q", words)
	}
	if c != nil {
		t.Errorf("a refusal came with a configuration")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not hold %q:\n%s", w, err)
		}
	}
	return err
}

// faultKeys gives the keys of all faults in order.
func faultKeys(t *testing.T, err error) []string {
	t.Helper()
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *config.Error: %v", err, err)
	}
	var list []string
	for _, f := range e.Faults {
		list = append(list, f.Key)
	}
	return list
}
