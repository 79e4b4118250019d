package token

import (
	"hash/maphash"
	"sync"
)

const (
	cacheShards    = 16
	cacheShardMax  = 4096 // words a shard holds before it starts anew
	cacheWordBytes = 48   // longer words are rare and would cost memory
)

// wordCache remembers the ids of words that were merged before. It holds at most cacheShards × cacheShardMax words; a full
// shard is emptied, since natural text fills it again at once. Safe for concurrent use.
type wordCache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu    sync.RWMutex // guards words
	words map[string][]int32
}

func newWordCache() *wordCache {
	c := &wordCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].words = make(map[string][]int32)
	}
	return c
}

func (c *wordCache) shard(word string) *cacheShard {
	return &c.shards[maphash.String(c.seed, word)%cacheShards]
}

// get returns the stored ids, which the caller must not change.
func (c *wordCache) get(word string) ([]int32, bool) {
	s := c.shard(word)
	s.mu.RLock()
	ids, ok := s.words[word]
	s.mu.RUnlock()
	return ids, ok
}

// put stores a copy of word and ids, so that neither keeps a whole prompt alive.
func (c *wordCache) put(word string, ids []int32) {
	key, val := string([]byte(word)), append([]int32(nil), ids...)
	s := c.shard(word)
	s.mu.Lock()
	if len(s.words) >= cacheShardMax {
		clear(s.words)
	}
	s.words[key] = val
	s.mu.Unlock()
}
