package deepseek

import (
	"context"
	"errors"
	"strings"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// Piece is a tensor of a quantized checkpoint and what it is made of: the same as what Load makes of the original with a reader of
// form Int8.
type Piece struct {
	nn.Request
	To string // its name there
}

// Quantized lists the tensors of the quantized checkpoint of a model that is stored otherwise, in the order of the network, without
// scales.
func Quantized(c *config.Config) ([]Piece, error) {
	if c.Quantization.W8A8 {
		return nil, errors.New("deepseek: the model is quantized already")
	}
	list, err := requests(c, topology.Place{TP: 1, EP: 1}, weights.Int8)
	if err != nil {
		return nil, err
	}
	pieces := make([]Piece, len(list))
	for i, r := range list {
		pieces[i] = Piece{r, r.Name}
		if layer, ok := strings.CutSuffix(r.Name, kvUpName); ok {
			pieces[i].To = layer + kUpName
			if r.Form == weights.Int8 {
				pieces[i].To = layer + vUpName
			}
		}
	}
	return pieces, nil
}

// requests lists what a rank asks for.
func requests(c *config.Config, p topology.Place, f weights.Form) ([]nn.Request, error) {
	sh, err := newShare(c, p)
	if err != nil {
		return nil, err
	}
	var list nn.Inventory
	m := newModel(c, sh, nn.Limits{})
	err = m.loadWeights(context.Background(), newLoader(c, sh, f, &nn.Allocator{}, &list, nil))
	return list.Tensors, err
}

// ConversionBytes returns the memory that the weights of ranks at these places take together beside the files when they are loaded by readers
// of a form: what is stored in another. It reads no weight; what is missing, or cannot be converted, counts nothing and is an error of Load.
func ConversionBytes(c *config.Config, k *weights.Checkpoint, places []topology.Place, f weights.Form) int64 {
	counted, total := map[weights.Matrix]bool{}, int64(0)
	for _, p := range places {
		list, err := requests(c, p, f)
		if err != nil {
			continue
		}
		for _, r := range list {
			if r.Vector || counted[r.Matrix] {
				continue
			}
			counted[r.Matrix] = true
			if n, err := k.ConversionBytes(r.Matrix); err == nil {
				total += n
			}
		}
	}
	return total
}
