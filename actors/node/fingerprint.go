package node

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// agreed is what all nodes of a cluster must have alike: the network, how it is spread, and what sizes the buffers that ranks
// of different nodes fill for each other.
type agreed struct {
	Model               config.Config
	Layout              topology.Layout
	All2AllBackend      string
	DType               nn.DType
	ExpandPrompts       bool
	MaxNumBatchedTokens int
	StallTimeout        time.Duration
}

// fingerprint is a digest of what must be alike.
func (o Options) fingerprint() ([]byte, error) {
	a := agreed{*o.Config, o.Layout, o.All2AllBackend, o.DType, o.ExpandPrompts, o.MaxNumBatchedTokens, o.StallTimeout}
	a.Model.Warnings, a.Model.Generation = nil, config.Generation{} // what was noticed, and defaults of requests
	data, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("digest of the settings: %w", err)
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}
