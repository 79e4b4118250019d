package rank

import (
	"fmt"
	"slices"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
)

// lower writes a step's batch into dst as the model wants it: rows with their KV slots, one block table row for each run of
// rows, padding up to padTo rows. dst keeps its memory. chosen are the tokens for the placeholders, by request; a run whose token is
// not there, or ends the request, or whose request has ended otherwise, becomes rows of padding, which masked tells. It appends to
// masked one entry for each run.
func lower(dst *nn.Batch, b *actors.Batch, padTo, blockSize int, chosen map[actors.RequestID]int32, masked []bool) ([]bool, error) {
	dst.Reset()
	masked = masked[:0]
	tokens := make([]int32, 1)
	ended := b.Begin()
	for i, r := range b.Rows {
		_, mask, err := fill(r, chosen)
		if err != nil {
			return nil, err
		}
		mask = mask || ended != nil && ended[i]
		masked = append(masked, mask)
		if !mask {
			dst.Width = max(dst.Width, len(r.Blocks))
		}
	}
	seq := int32(0)
	for i, r := range b.Rows {
		if !r.Prompt {
			if dst.Decode < len(dst.Tokens) {
				return nil, fmt.Errorf("request %d: a row that continues an answer behind rows of prompts: rank and scheduler disagree on the step", r.Request)
			}
			dst.Decode += len(r.Tokens)
		}
		if masked[i] {
			dst.Pad(len(dst.Tokens) + len(r.Tokens))
			continue
		}
		run := r.Tokens
		if run[0] == actors.Placeholder {
			tokens[0] = chosen[r.Request]
			run = tokens
		}
		for i, token := range run {
			dst.Tokens = append(dst.Tokens, token)
			dst.Positions = append(dst.Positions, int32(r.Position+i))
			dst.Slots = append(dst.Slots, kv.Slot(r.Blocks, r.Position+i, blockSize))
			dst.Seqs = append(dst.Seqs, seq)
		}
		dst.Tables = append(dst.Tables, r.Blocks...)
		for range dst.Width - len(r.Blocks) {
			dst.Tables = append(dst.Tables, 0)
		}
		seq++
		if r.Sample {
			dst.Samples = append(dst.Samples, int32(len(dst.Tokens)-1))
		}
	}
	if len(dst.Tokens) > padTo {
		return nil, fmt.Errorf("batch of %d rows, its plan pads to %d: rank and scheduler disagree on the step", len(dst.Tokens), padTo)
	}
	dst.Pad(padTo)
	return masked, nil
}

// fill returns the token of a run that begins with a placeholder, and whether the run is padding instead.
func fill(r actors.Rows, chosen map[actors.RequestID]int32) (token int32, mask bool, err error) {
	if len(r.Tokens) == 0 {
		return 0, false, fmt.Errorf("request %d: a run without tokens", r.Request)
	}
	if r.Tokens[0] != actors.Placeholder {
		return r.Tokens[0], false, nil
	}
	if len(r.Tokens) != 1 {
		return 0, false, fmt.Errorf("request %d: a placeholder in a run of %d tokens: decode rows have one", r.Request, len(r.Tokens))
	}
	token, ok := chosen[r.Request]
	return token, !ok || slices.Contains(r.Ends, token), nil
}
