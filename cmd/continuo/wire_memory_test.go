package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestMemoryIsOffWhereAServerNeedsKeys: what keyed clients say is remembered only where the settings say so.
func TestMemoryIsOffWhereAServerNeedsKeys(t *testing.T) {
	for _, test := range []struct {
		enabled, keys    string
		isServer, hasKey bool
		want             bool
	}{
		{config.MemoryAuto, config.KeysOnceMade, false, true, true},
		{config.MemoryAuto, config.KeysOnceMade, true, false, true},
		{config.MemoryAuto, config.KeysOnceMade, true, true, false},
		{config.MemoryAuto, config.KeysAlways, true, false, false},
		{config.MemoryAuto, config.KeysNever, true, true, true},
		{config.MemoryOn, config.KeysAlways, true, true, true},
		{config.MemoryOff, config.KeysOnceMade, false, false, false},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := &services{settings: &config.Config{}, store: storetest.NewMemory()}
			w.settings.Memory.Enabled, w.settings.Server.Keys = test.enabled, test.keys
			if test.hasKey {
				key := auth.Key{ID: "key_1", ProjectID: "p", Hash: "00", CreatedAt: time.Now()}
				if err := w.store.CreateKey(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if remembers, err := w.remembers(t.Context(), test.isServer); err != nil || remembers != test.want {
				t.Errorf("it remembers: %v (%v), want %v", remembers, err, test.want)
			}
		})
	}
}
