// Package bench holds the benchmarks of the whole forward pass, in the form that benchstat reads:
//
//	go test -run '^$' -bench . -count 6 ./test/bench
package bench
