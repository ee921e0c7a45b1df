package token_test

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/continuo-log/continuo/token"
)

func TestARememberedCountIsNotCountedAgain(t *testing.T) {
	calls := 0
	count := func() (chars, tokens int) {
		calls++
		return 7, 2
	}
	key := sha256.Sum256([]byte(t.Name()))
	for range 3 {
		if chars, tokens := token.O200k().CountOnce(key, count); chars != 7 || tokens != 2 {
			t.Fatalf("%d characters, %d tokens", chars, tokens)
		}
	}
	if calls != 1 {
		t.Errorf("it was counted %d times", calls)
	}
}

// More keys than are remembered replace each other, and never get the count of another key.
func TestManyKeysHaveTheirOwnCounts(t *testing.T) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range 20_000 {
				key := sha256.Sum256(fmt.Append(nil, t.Name(), i))
				if chars, tokens := token.CL100k().CountOnce(key, func() (int, int) { return i, -i }); chars != i || tokens != -i {
					t.Errorf("key %d has %d characters and %d tokens", i, chars, tokens)
					return
				}
			}
		})
	}
	all.Wait()
}
