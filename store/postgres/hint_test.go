package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// timedPayload is a payload and when it was sent.
type timedPayload struct {
	at      time.Duration
	payload string
}

// startTestHints starts hints that send to a list, failing while fails is set.
func startTestHints(t *testing.T) (h *hints, sent func() []timedPayload, fails *atomic.Bool) {
	var all []timedPayload
	fails = &atomic.Bool{}
	began := time.Now()
	h = startHints(func(ctx context.Context, payload string) error {
		if fails.Load() {
			return errors.New("no connection")
		}
		all = append(all, timedPayload{time.Since(began), payload})
		return nil
	})
	return h, func() []timedPayload { synctest.Wait(); return all }, fails
}

func conversationsOf(t *testing.T, h *hints, payload string) []string {
	t.Helper()
	sender, ids := readHint(payload)
	if sender != h.sender {
		t.Errorf("the payload %q is of %q, want %q", payload, sender, h.sender)
	}
	slices.Sort(ids)
	return ids
}

func TestHintsOfTheSameMomentAreSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sent, _ := startTestHints(t)
		h.changed("first")
		sent()
		for range 3 {
			h.changed("b")
			h.changed("a")
		}
		time.Sleep(2 * hintEvery)
		all := sent()
		if len(all) != 2 || all[0].at != 0 || all[1].at != hintEvery {
			t.Fatalf("sent %v; want one at once and one after %v", all, hintEvery)
		}
		if ids := conversationsOf(t, h, all[1].payload); !slices.Equal(ids, []string{"a", "b"}) {
			t.Errorf("the second names %q", ids)
		}
		h.close()
	})
}

func TestHintOfTooManyConversationsNamesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sent, _ := startTestHints(t)
		h.changed("first")
		sent()
		for i := range 10_000 {
			h.changed("conv_0199c5f0d1a27000b8f7c2a94f1e" + strconv.Itoa(i))
		}
		h.mu.Lock()
		if n := len(h.waiting); n > maxHint {
			t.Errorf("%d conversations wait", n)
		}
		h.mu.Unlock()
		time.Sleep(hintEvery)
		sent()
		h.changed("a b") // ambiguous in a payload
		h.close()
		all := sent()
		if len(all) != 3 {
			t.Fatalf("sent %v", all)
		}
		for _, timedPayload := range all[1:] {
			if ids := conversationsOf(t, h, timedPayload.payload); ids != nil || len(timedPayload.payload) > maxHint {
				t.Errorf("%d bytes name %q", len(timedPayload.payload), ids)
			}
		}
	})
}

func TestLargestHintFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sent, _ := startTestHints(t)
		h.changed("first")
		sent()
		for i := 0; len(h.sender)+h.size+5 <= maxHint; i++ {
			h.changed(strconv.Itoa(1000 + i))
		}
		h.close()
		last := sent()[1].payload
		if len(last) > maxHint || len(last) < maxHint-5 || strings.Contains(last, anyConversation) {
			t.Errorf("%d bytes: %q", len(last), last)
		}
	})
}

func TestFailedHintIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sent, fails := startTestHints(t)
		fails.Store(true)
		h.changed("a")
		sent()
		fails.Store(false)
		time.Sleep(hintRetry)
		all := sent()
		if len(all) != 1 || conversationsOf(t, h, all[0].payload) != nil {
			t.Errorf("sent %v; want one that names none, for all", all)
		}
		h.close()
	})
}

func TestClosingSendsPendingHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sent, _ := startTestHints(t)
		h.changed("first")
		sent()
		h.changed("last")
		h.close()
		all := sent()
		if len(all) != 2 || !slices.Equal(conversationsOf(t, h, all[1].payload), []string{"last"}) {
			t.Errorf("sent %v", all)
		}
	})
}

func TestNothingIsSentWithoutHints(t *testing.T) {
	var h *hints
	h.changed("a")
	h.close()
}
