// Package gateway is where requests enter a node: it checks and tokenizes them, picks an engine, keeps the log of the tokens
// each has got, and forwards the answer to the client's stream. It knows no batches and no devices, and it never looks into
// the text of an answer.
package gateway
