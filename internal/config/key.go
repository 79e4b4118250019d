package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Kind is what a setting's value is written as.
type Kind string

// The kinds, as help texts name them.
const (
	Text     Kind = "text"
	Whole    Kind = "int"
	Unsigned Kind = "uint"
	Number   Kind = "float"
	Switch   Kind = "bool"
	Duration Kind = "duration"
	List     Kind = "text list"
)

// Key is the name of a setting and what its value looks like.
type Key struct {
	Name string // with underscores
	Kind Kind
}

// Flag returns the name of the key's flag, without the two dashes in front.
func (k Key) Flag() string { return strings.ReplaceAll(k.Name, "_", "-") }

// Keys returns all settings in the order of Settings.
func Keys() []Key {
	t := reflect.TypeFor[Settings]()
	keys := make([]Key, t.NumField())
	for i := range keys {
		keys[i] = Key{Name: t.Field(i).Tag.Get("koanf"), Kind: kindOf(t.Field(i).Type)}
	}
	return keys
}

func kindOf(t reflect.Type) Kind {
	if t == reflect.TypeFor[time.Duration]() {
		return Duration
	}
	switch t.Kind() {
	case reflect.Int:
		return Whole
	case reflect.Uint64:
		return Unsigned
	case reflect.Float32:
		return Number
	case reflect.Bool:
		return Switch
	case reflect.Slice:
		return List
	default:
		return Text
	}
}

// Find returns the key of that name. It panics if there is none: names are written in code, never by users.
func Find(name string) Key {
	for _, key := range Keys() {
		if key.Name == name {
			return key
		}
	}
	panic("config: no setting has the name " + name)
}

// KeyOf returns the name of the key whose flag it is given.
func KeyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// Default returns the key's default as a flag would be given it, "" if the default is to have none.
func (k Key) Default() string {
	defaults := reflect.ValueOf(Defaults())
	for i, key := range Keys() {
		if key != k || defaults.Field(i).IsZero() && k.Kind != Whole && k.Kind != Unsigned {
			continue
		}
		return fmt.Sprint(defaults.Field(i))
	}
	return ""
}
