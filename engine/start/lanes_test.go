package start

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A turn that comes twice, since its idempotency key did, must not interrupt or refuse itself.
func TestLaneWaitsForTheSameTurn(t *testing.T) {
	for _, policy := range []OnBusy{Wait, Reject, Interrupt} {
		synctest.Test(t, func(t *testing.T) {
			var l lanes
			stopped := false
			leave, _, err := l.enter(t.Context(), "c", "t1", policy, time.Minute, func(error) { stopped = true })
			if err != nil {
				t.Fatal(err)
			}
			entered := make(chan error, 1)
			go func() {
				leave, _, err := l.enter(context.WithoutCancel(t.Context()), "c", "t1", policy, time.Minute, func(error) {})
				if err == nil {
					leave()
				}
				entered <- err
			}()
			synctest.Wait()
			if stopped || len(entered) > 0 {
				t.Errorf("%s: the first was stopped: %v; the second did not wait: %v", policy, stopped, len(entered) > 0)
			}
			leave()
			if err := <-entered; err != nil {
				t.Errorf("%s: %v", policy, err)
			}
		})
	}
}
