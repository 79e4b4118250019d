// Package faulty wraps any device and makes it fail as told: a call is delayed, fails, hangs or panics, an ability is missing. Rules of
// an Injector say which calls; without rules a wrapped device behaves as the one inside. It computes nothing, makes up no results
// and decides nothing by chance: a test that wants chance gives a predicate with a seed of its own.
package faulty
