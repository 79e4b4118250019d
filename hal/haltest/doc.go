// Package haltest is the conformance suite that every backend passes: Run(t, open) checks memory, streams, errors and each op
// against its formula. It looks at results only, never at how a backend reaches them.
package haltest
