//go:build race

package rig

// raceEnabled says that the race detector is on.
const raceEnabled = true
