package backoff_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

func TestWaitWaitsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		if err := backoff.Wait(ctx, time.Minute); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.AfterFunc(time.Second, cancel)
		if err := backoff.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestDoubled(t *testing.T) {
	for _, test := range []struct {
		first, most time.Duration
		failures    int
		want        time.Duration
	}{
		{1, 100, 0, 1},
		{1, 100, 1, 1},
		{1, 100, 2, 2},
		{1, 100, 4, 8},
		{1, 100, 8, 100},
		{1, 100, math.MaxInt, 100},
		{1, math.MaxInt64, math.MaxInt, 1024},
		{5, 3, 1, 3},
		{0, 100, 1 << 40, 0},
		{math.MaxInt64/2 + 1, math.MaxInt64, 3, math.MaxInt64},
	} {
		if got := backoff.Doubled(test.first, test.most, test.failures); got != test.want {
			t.Errorf("%d behind %d failures of at most %d: %d, want %d", test.first, test.failures, test.most, got, test.want)
		}
	}
}
