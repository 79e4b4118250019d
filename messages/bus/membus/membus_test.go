package membus_test

import (
	"testing"
	"testing/synctest"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/bustest"
	"github.com/moerack/moerack/messages/bus/membus"
)

func open(*testing.T) []bus.Bus {
	n := membus.New(membus.Options{})
	return []bus.Bus{n.Connect(), n.Connect(), n.Connect()}
}

func TestContract(t *testing.T) { bustest.Run(t, open) }

func TestContractOnFakeTime(t *testing.T) { bustest.RunIn(t, synctest.Test, open) }
