package topology

import "fmt"

// Exchange is the way from attention to experts and back in a step's MoE layers, by its name in settings and stats.
type Exchange string

// The exchanges.
const (
	Local     Exchange = "local"     // the rank holds all experts: no communication
	AllGather Exchange = "allgather" // every rank gets all rows and serves those of its experts
)

// Auto is the setting that leaves the exchange to ResolveExchange.
const Auto = "auto"

// ResolveExchange returns the exchange that a setting of all2all-backend means for experts spread over ep ranks. With one rank
// there is nothing to exchange, and whoever asks for it has another layout in mind.
func ResolveExchange(setting string, ep int) (Exchange, error) {
	switch {
	case setting != Auto && setting != string(AllGather):
		return "", fmt.Errorf("all2all-backend=%q: must be %s or %s", setting, Auto, AllGather)
	case ep > 1:
		return AllGather, nil
	case setting == Auto:
		return Local, nil
	default:
		return "", fmt.Errorf("all2all-backend=%s: every rank holds all experts, so the only exchange is %s, which %s takes; "+
			"to spread the experts set enable-expert-parallel and data-parallel-size × tensor-parallel-size above 1", setting, Local, Auto)
	}
}
