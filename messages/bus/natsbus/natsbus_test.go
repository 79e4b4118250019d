package natsbus_test

import (
	"testing"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/bustest"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/messages/bus/natsbus/natstest"
)

func TestContractInProcess(t *testing.T) {
	bustest.Run(t, func(t *testing.T) []bus.Bus {
		s, err := natsbus.Embed(natsbus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		var buses []bus.Bus
		for range 3 {
			b, err := s.Connect(t.Context(), natsbus.Options{})
			if err != nil {
				t.Fatal(err)
			}
			buses = append(buses, b)
		}
		return buses
	})
}

func TestContractOverTCP(t *testing.T) {
	bustest.Run(t, func(t *testing.T) []bus.Bus {
		s := natstest.Start(t, "")
		var buses []bus.Bus
		for range 3 {
			b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			buses = append(buses, b)
		}
		return buses
	})
}
