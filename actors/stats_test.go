package actors

import (
	"encoding/json"
	"testing"
)

// TestStatsKeys pins the stats file: other programs read these keys.
func TestStatsKeys(t *testing.T) {
	got, err := json.Marshal(Stats{Engines: []EngineStats{{}}, Ranks: []RankStats{{}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"steps":0,"bus":null,` +
		`"engines":[{"engine":0,"steps":0,"real_tokens":0,"dummy_steps":0,"padded_tokens":0,"expanded_tokens":0,"preemptions":0,"prefix_hit_tokens":0,"kv_blocks":0,"kv_blocks_free":0}],` +
		`"ranks":[{"rank":0,"weight_bytes":0,"threads":0}],` +
		`"exchange_steps":{"local":0,"allgather":0,"alltoall":0,"mc2":0,"p2p":0},"stage_steps":{"1":0,"2":0,"3":0},` +
		`"graph_steps":0,"bytes":{"a2e":0,"e2a":0,"tp":0},"prompt_tokens":0,"generated_tokens":0,"seconds":0}`
	if string(got) != want {
		t.Errorf("stats file\n%s\nwant\n%s", got, want)
	}
}
