// Package cluster holds tests of whole racks in one process: real models, devices, actors and bus.
package cluster
