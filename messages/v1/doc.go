// Package messagesv1 owns the protobuf messages that cross between nodes, first version: what they hold, by which number on the
// wire. Field numbers are never used again for something else. It does not say who sends what when (package actors and its
// children do), nor on which subject (package subject).
package messagesv1

//go:generate go -C ../../tools/proto run . ../../messages/v1 moerack/v1
