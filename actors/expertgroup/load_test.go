package expertgroup

import (
	"reflect"
	"testing"

	"github.com/moerack/moerack/model/nn"
)

func TestExpertLoad(t *testing.T) {
	load := func(first int, rows ...int64) *nn.Load {
		l := nn.NewLoad(first, len(rows))
		for e, n := range rows {
			l.Add(e, n)
		}
		return l
	}
	for _, tt := range []struct {
		name      string
		first, tp int
		loads     []*nn.Load
		want      []Load
	}{
		{"spread over ranks of other nodes too", 2, 1, []*nn.Load{load(4, 7, 0), load(6, 1, 2)}, []Load{{4, 2, 7}, {5, 2, 0}, {6, 3, 1}, {7, 3, 2}}},
		{"spread over the ranks of an engine", 0, 2, []*nn.Load{load(0, 7), load(1, 3)}, []Load{{0, 0, 7}, {1, 1, 3}}},
		{"cut over the ranks of two engines", 0, 2, []*nn.Load{load(0, 7, 1), load(0, 7, 1), load(0, 2, 0), load(0, 2, 0)}, []Load{{0, 0, 7}, {1, 0, 1}, {0, 2, 2}, {1, 2, 0}}},
		{"whole in each engine", 0, 1, []*nn.Load{load(0, 7), load(0, 2)}, []Load{{0, 0, 7}, {0, 1, 2}}},
		{"a model without experts", 0, 2, []*nn.Load{nil, nil}, nil},
	} {
		if got := ExpertLoad(tt.first, tt.tp, tt.loads); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
