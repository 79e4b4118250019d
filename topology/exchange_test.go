package topology

import "testing"

func TestResolveExchange(t *testing.T) {
	for _, tt := range []struct {
		setting string
		ep      int
		want    Exchange
		fault   string
	}{
		{"auto", 1, Local, ""},
		{"auto", 2, AllGather, ""},
		{"allgather", 8, AllGather, ""},
		{"allgather", 1, "", "all2all-backend=allgather: every rank holds all experts, so the only exchange is local, which auto takes; " +
			"to spread the experts set enable-expert-parallel and data-parallel-size × tensor-parallel-size above 1"},
		{"local", 2, "", `all2all-backend="local": must be auto or allgather`},
		{"mc2", 1, "", `all2all-backend="mc2": must be auto or allgather`},
		{"", 2, "", `all2all-backend="": must be auto or allgather`},
	} {
		got, err := ResolveExchange(tt.setting, tt.ep)
		if got != tt.want || text(err) != tt.fault {
			t.Errorf("ResolveExchange(%q, %d) = %q, %v, want %q, %q", tt.setting, tt.ep, got, err, tt.want, tt.fault)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
