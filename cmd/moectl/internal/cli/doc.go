// Package cli is the command line of moectl: one file for each command, and the files they share for flags, prompts, output
// and exit codes. It turns words into the options of other packages and their results into text; it decides nothing about
// how a model runs, and it names no backend: those come with Host.
package cli
