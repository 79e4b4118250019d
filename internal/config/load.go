package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
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
	File     string   // the YAML file that was read, "" if none was
	Warnings []string // what looks like a mistake and was left out
	given    *koanf.Koanf
	origin   map[string]string
}

// Given reports whether a file, a variable or a flag set the key.
func (l *Loaded) Given(key string) bool { return l.given != nil && l.given.Exists(key) }

// Warnings returns what Load would warn of, for a command that ends before it reads any settings.
func Warnings(environ []string) []string {
	l := &Loaded{}
	l.variables(Sources{Environ: environ})
	return l.Warnings
}

// layer is one source after it was read.
type layer struct {
	name   func(key string) string // how a key is written there
	values *koanf.Koanf
}

// Fault returns a fault of a key that is found after the reading, named as the user wrote the key.
func (l *Loaded) Fault(key, problem string) Fault {
	return Fault{Key: key, Source: l.origin[key], Problem: problem}
}

// Load reads all sources and validates the result. The error is a Faults with everything that is wrong, or says why the
// file could not be read. The result is there in any case: with an error it has the warnings, what could be read, and defaults
// for the rest.
func Load(src Sources) (*Loaded, error) {
	l := &Loaded{Settings: Defaults(), given: koanf.New(delimiter), origin: map[string]string{}}
	variables, path := l.variables(src)
	layers := []layer{}
	if path != "" {
		l.File = path
		written, err := document(path)
		if err != nil {
			return l, err
		}
		values := koanf.New(delimiter)
		if err := values.Load(confmap.Provider(written, ""), nil); err != nil {
			return l, fmt.Errorf("config: %s: %w", path, err)
		}
		layers = append(layers, layer{func(key string) string { return path + ": " + key }, values})
	}
	flags := koanf.New(delimiter)
	if err := flags.Load(confmap.Provider(src.Flags, ""), nil); err != nil {
		return l, fmt.Errorf("config: flags: %w", err)
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
		l.reset(faults)
		return l, faults
	}
	return l, nil
}

// reset gives the faulty keys their defaults, so that what else is wrong can be looked for.
func (l *Loaded) reset(faults Faults) {
	fields, defaults := reflect.ValueOf(&l.Settings).Elem(), reflect.ValueOf(Defaults())
	for i, key := range Keys() {
		if slices.ContainsFunc(faults, func(f Fault) bool { return f.Key == key.Name }) {
			fields.Field(i).Set(defaults.Field(i))
		}
	}
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
