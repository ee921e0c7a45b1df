package continuo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestPartTextInAnotherCase(t *testing.T) {
	var c continuo.Content
	huge := strings.Repeat("secret ", 1000)
	if err := json.Unmarshal([]byte(`[{"type":"text","text":"`+huge+`","TEXT":"x"}]`), &c); err != nil {
		return // it is refused, which is as good
	}
	if c.String() != huge {
		t.Errorf("measured and shown as %q, sent as %d bytes of Raw", c.String(), len(c.Parts()[0].Raw))
	}
}

func TestTwoLogsUnderLoad(t *testing.T) {
	store := storetest.NewMemory()
	var logs []*continuo.Log
	for range 3 {
		logs = append(logs, continuo.NewLog(store, continuo.LogOptions{}))
	}
	c, _ := logs[0].Create(t.Context(), continuo.Conversation{})
	var all sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]int64{}
	for w := range 12 {
		all.Go(func() {
			for i := range 30 {
				text := fmt.Sprintf("%d-%d", w, i)
				got, err := logs[w%3].Append(t.Context(), c.ID, []continuo.Entry{rUser(text)}, continuo.AppendOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[text] = got[0].Seq
				mu.Unlock()
			}
		})
	}
	all.Wait()
	c, _ = logs[0].Conversation(t.Context(), c.ID)
	for e, err := range logs[0].Read(t.Context(), c, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if acked[e.Content.String()] != e.Seq {
			t.Errorf("seq %d", e.Seq)
		}
		delete(acked, e.Content.String())
	}
	if len(acked) > 0 {
		t.Error(acked)
	}
}
