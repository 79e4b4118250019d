package config

import "testing"

func TestKeysKnowTheirFormAndDefault(t *testing.T) {
	for name, want := range map[string]struct {
		kind    Kind
		text    string
		theFlag string
	}{
		"model":         {Text, "", "model"},
		"max_tokens":    {Whole, "128", "max-tokens"},
		"top_k":         {Whole, "0", "top-k"},
		"seed":          {Unsigned, "0", "seed"},
		"temperature":   {Number, "1", "temperature"},
		"ignore_eos":    {Switch, "", "ignore-eos"},
		"stop":          {List, "", "stop"},
		"start_timeout": {Duration, "5m0s", "start-timeout"},
	} {
		key := Find(name)
		if key.Kind != want.kind || key.Default() != want.text || key.Flag() != want.theFlag || KeyOf(key.Flag()) != name {
			t.Errorf("%s: kind %s, default %q, flag %s", name, key.Kind, key.Default(), key.Flag())
		}
	}
}
