package known

import (
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func price(f float64) *float64 { return &f }

func TestCost(t *testing.T) {
	claude := &Prices{Input: 3, Output: 15, CacheRead: price(0.3), CacheWrite: price(3.75)}
	tiered := &Prices{Input: 2, Output: 12, CacheRead: price(0.2), Tiers: []Tier{{Prices: Prices{Input: 4, Output: 18}}}}
	tiered.Tiers[0].Tier.Size = 200_000
	for _, test := range []struct {
		name   string
		prices *Prices
		usage  continuo.Usage
		want   int64
	}{
		{"input and output", claude, continuo.Usage{InputTokens: 1000, OutputTokens: 100}, 4_500_000},
		{"cached and written", claude, continuo.Usage{InputTokens: 1000, CachedTokens: 600, CacheWriteTokens: 300, OutputTokens: 100}, 3_105_000},
		{"more cached than input", claude, continuo.Usage{InputTokens: 1000, CachedTokens: 5000, CacheWriteTokens: 10}, 300_000},
		{"no cache price", &Prices{Input: 1, Output: 2}, continuo.Usage{InputTokens: 10, CachedTokens: 5, CacheWriteTokens: 1, OutputTokens: 1}, 12_000},
		{"reasoning as output", claude, continuo.Usage{OutputTokens: 10, ReasoningTokens: 8}, 150_000},
		{"reasoning with a price", &Prices{Output: 1.2, Reasoning: price(4)}, continuo.Usage{OutputTokens: 10, ReasoningTokens: 8}, 34_400},
		{"at the tier's size", tiered, continuo.Usage{InputTokens: 200_000, OutputTokens: 1000}, 412_000_000},
		{"above it, the cache in the base's ratio", tiered, continuo.Usage{InputTokens: 300_000, CachedTokens: 100_000, OutputTokens: 1000}, 858_000_000},
		{"free", &Prices{}, continuo.Usage{InputTokens: 7}, 0},
	} {
		if got := test.prices.Cost(test.usage); got != (continuo.Cost{Nano: test.want, Currency: "USD"}) {
			t.Errorf("%s: %+v, want %d", test.name, got, test.want)
		}
	}
	if got := (*Prices)(nil).Cost(continuo.Usage{InputTokens: 1}); got != (continuo.Cost{}) {
		t.Errorf("without prices: %+v", got)
	}
	if got := claude.Cost(continuo.Usage{}); got != (continuo.Cost{}) {
		t.Errorf("without usage: %+v", got)
	}
}

func TestFind(t *testing.T) {
	c := BuiltIn()
	for _, test := range []struct {
		provider, model string
		window          int
	}{
		{"openai", "gpt-4.1", 1_047_576},
		{"openai", "gpt-4.1-2025-04-14", 1_047_576},
		{"openai", "gpt-5-mini", 272_000}, // the limit of its input
		{"anthropic", "claude-haiku-4-5-20251001", 200_000},
		{"api.deepseek.com", "deepseek-v4-flash", 1_000_000},
		{"openai", "gpt-4.1-2025", 0},
		{"127.0.0.1:8000", "gpt-4.1", 0},
		{"", "gpt-4.1", 0},
		{"openai", "", 0},
	} {
		if found, ok := c.Find(test.provider, test.model); found.Window() != test.window || ok != (test.window > 0) {
			t.Errorf("%s %s: %d, %v; want %d", test.provider, test.model, found.Window(), ok, test.window)
		}
	}
	if _, ok := c.Named("anthropic/claude-opus-5"); !ok {
		t.Error("anthropic/claude-opus-5 is not found")
	}
	if _, ok := c.Named("claude-opus-5"); ok {
		t.Error("a name without a vendor is found")
	}
}

func TestPricesFromADay(t *testing.T) {
	found, _ := BuiltIn().Find("google", "gemini-4-argon")
	for day, want := range map[string]float64{"2026-11-30": 2, "2026-12-01": 4} {
		now, _ := time.Parse(time.DateOnly, day)
		if got := found.PricesAt(now); got.Input != want {
			t.Errorf("on %s: %v, want %v", day, got.Input, want)
		}
	}
}

func TestBuiltInIsSound(t *testing.T) {
	models := 0
	for id, vendor := range BuiltIn() {
		if _, err := time.Parse(time.DateOnly, vendor.Checked); err != nil || vendor.Doc == "" || vendor.API == "" {
			t.Errorf("%s: source %q, checked %q, API %q", id, vendor.Doc, vendor.Checked, vendor.API)
		}
		for name, model := range vendor.Models {
			models++
			prices := model.Cost
			switch {
			case prices == nil || prices.Input <= 0 || prices.Output < prices.Input:
				t.Errorf("%s %s: prices %+v", id, name, prices)
			case prices.CacheRead != nil && *prices.CacheRead >= prices.Input:
				t.Errorf("%s %s: cached input costs %v, input %v", id, name, *prices.CacheRead, prices.Input)
			case model.Limit.Context > 0 && model.Limit.Output > model.Limit.Context, model.Limit.Input > model.Limit.Context:
				t.Errorf("%s %s: limits %+v", id, name, model.Limit)
			}
			for _, tier := range prices.Tiers {
				if tier.Tier.Size == 0 || tier.Input <= prices.Input {
					t.Errorf("%s %s: tier %+v", id, name, tier)
				}
			}
		}
	}
	if models < 40 {
		t.Errorf("only %d models", models)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"models: 1":       "no catalogue",
		"{}":              "lists no models",
		`{"a": {"b": 1}}`: "lists no models",
		`{"a": {"models": {"m": {"cost": {"input": -1}}}}}`:                                    "a price is no number",
		`{"a": {"models": {"m": {"cost": {"tiers": [{"input": 1, "cache_read": 1e9}]}}}}}`:     "a price is no number",
		`{"a": {"models": {"m": {"limit": {"context": -1}}}}}`:                                 "a limit is negative",
		`{"a": {"models": {"m": {"cost_from": {"2026-01-01": {"input": 1, "output": 1e7}}}}}}`: "a price is no number",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
