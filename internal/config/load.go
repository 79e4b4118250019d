package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// prefix starts the names of the environment variables that are settings.
const prefix = "MOE_"

// fileVariable names the file when no flag does. It is not itself a setting.
const fileVariable = prefix + "CONFIG"

// delimiter parts nested keys. Settings have none, so a nested key is an unknown one.
const delimiter = "."

// Sources are where values come from.
type Sources struct {
	File    string         // YAML file; "" takes the one that MOE_CONFIG names, if any
	Environ []string       // NAME=value, as os.Environ gives them
	Flags   map[string]any // values of the flags that were given, by key: a text, or a []string for lists

	// Check returns the faults that others than this package know of, under their keys; nil: there are none.
	Check func(Settings) Faults
}

// Loaded is the result of a reading.
type Loaded struct {
	Settings
	Warnings []string // what looks like a mistake and was left out
	given    *koanf.Koanf
	origin   map[string]string
}

// Given reports whether a file, a variable or a flag set the key.
func (l *Loaded) Given(key string) bool { return l.given != nil && l.given.Exists(key) }

// layer is one source after it was read.
type layer struct {
	name   func(key string) string // how a key is written there
	values *koanf.Koanf
}

// Load reads all sources and validates the result. The error is a Faults with everything that is wrong, or says why the
// file could not be read.
func Load(src Sources) (*Loaded, error) {
	l := &Loaded{Settings: Defaults(), given: koanf.New(delimiter), origin: map[string]string{}}
	variables, path := l.variables(src)
	layers := []layer{}
	if path != "" {
		values := koanf.New(delimiter)
		if err := values.Load(file.Provider(path), yaml.Parser()); err != nil {
			return nil, fileError(path, err)
		}
		layers = append(layers, layer{func(key string) string { return path + ": " + key }, values})
	}
	flags := koanf.New(delimiter)
	if err := flags.Load(confmap.Provider(src.Flags, ""), nil); err != nil {
		return nil, fmt.Errorf("config: flags: %w", err)
	}
	layers = append(layers,
		layer{func(key string) string { return prefix + strings.ToUpper(key) }, variables},
		layer{func(key string) string { return "--" + Key{Name: key}.Flag() }, flags})

	var faults Faults
	for _, layer := range layers {
		faults = append(faults, l.merge(layer)...)
	}
	faults = append(faults, l.decode()...)
	invalid := l.Validate()
	if src.Check != nil {
		invalid = append(invalid, src.Check(l.Settings)...)
	}
	for _, fault := range invalid {
		// A value that could not be read left the default in place, so a key has at most one fault.
		fault.Source = l.origin[fault.Key]
		faults = append(faults, fault)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return l, nil
}

// variables reads the MOE_ variables: those that are settings, and the file's name. Others earn a warning: they may belong
// to another program.
func (l *Loaded) variables(src Sources) (values *koanf.Koanf, path string) {
	path = src.File
	values = koanf.New(delimiter)
	provider := env.Provider("", env.Opt{
		Prefix:      prefix,
		EnvironFunc: func() []string { return src.Environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ToLower(strings.TrimPrefix(name, prefix))
			switch {
			case name == fileVariable:
				if path == "" {
					path = value
				}
			case known(key) && name == prefix+strings.ToUpper(key):
				return key, value
			default:
				l.Warnings = append(l.Warnings, "variable "+name+" is no setting"+hint(key, func(k string) string { return prefix + strings.ToUpper(k) }))
			}
			return "", nil
		},
	})
	// The provider only walks EnvironFunc and cannot fail.
	_ = values.Load(provider, nil)
	return values, path
}

// merge takes over a layer's keys and returns those that are no settings.
func (l *Loaded) merge(from layer) Faults {
	var faults Faults
	for _, key := range slices.Sorted(slices.Values(from.values.Keys())) {
		value := from.values.Get(key)
		switch {
		case !known(key):
			faults = append(faults, Fault{Key: key, Source: from.name(key), Problem: fmt.Sprintf("%v: unknown key%s", quoted(value), hint(key, func(k string) string { return k }))})
		case value == nil: // a key without a value says nothing
		default:
			// Set fails only for an empty key, which is not known.
			_ = l.given.Set(key, value)
			l.origin[key] = from.name(key)
		}
	}
	return faults
}

// decode sets the fields of Settings that were given.
func (l *Loaded) decode() Faults {
	var faults Faults
	fields := reflect.ValueOf(&l.Settings).Elem()
	for i, key := range Keys() {
		if !l.Given(key.Name) {
			continue
		}
		if err := decode(fields.Field(i), key.Kind, l.given.Get(key.Name)); err != nil {
			faults = append(faults, Fault{Key: key.Name, Source: l.origin[key.Name], Problem: err.Error()})
		}
	}
	return faults
}

func known(key string) bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == key })
}

// fileError says what to do about a file that cannot be read.
func fileError(path string, err error) error {
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return fmt.Errorf("config: %s: is a directory, want a YAML file", path)
	}
	return fmt.Errorf("config: %s: want a YAML file of key: value lines: %w", path, err)
}
