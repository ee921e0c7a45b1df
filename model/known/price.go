package known

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Prices are what a model costs, in US dollars per million tokens.
type Prices struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite are for the parts of the input that a cache had, or has now. Default: as other input.
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	// Reasoning is for the part of the output that is reasoning. Default: as other output.
	Reasoning *float64 `json:"reasoning"`
	// Tiers are the prices of whole requests whose input is larger.
	Tiers []Tier `json:"tiers"`
}

// Tier are the prices of requests with more than Size tokens of input. Prices that it does not have are to its own as the
// model's others are to theirs.
type Tier struct {
	Prices
	Tier struct {
		Size int `json:"size"`
	} `json:"tier"`
}

func (p *Prices) check() error {
	if p == nil {
		return nil
	}
	for _, price := range []*float64{&p.Input, &p.Output, p.CacheRead, p.CacheWrite, p.Reasoning} {
		if price != nil && !(*price >= 0 && *price < 1e6) {
			return errors.New("a price is no number of US dollars per million tokens")
		}
	}
	for i := range p.Tiers {
		if err := p.Tiers[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// PricesAt are the model's prices at a time; nil if they are unknown.
func (m Model) PricesAt(now time.Time) *Prices {
	prices, today := m.Cost, now.UTC().Format(time.DateOnly)
	for _, day := range slices.Sorted(maps.Keys(m.CostFrom)) {
		if day <= today {
			prices = m.CostFrom[day]
		}
	}
	return prices
}

const perMillion = 1e-6

// nano is the unit of continuo.Cost.
const nano = 1e9

// Cost is what a request with a usage costs. It is the list price: discounts, batches, tiers of service and what a
// provider's own tools cost are not known here. A write to a cache counts as one of the shortest kind.
func (p *Prices) Cost(usage continuo.Usage) continuo.Cost {
	if p == nil || usage == (continuo.Usage{}) {
		return continuo.Cost{}
	}
	prices := p.of(usage.InputTokens)
	cached := min(usage.CachedTokens, usage.InputTokens)
	written := min(usage.CacheWriteTokens, usage.InputTokens-cached)
	reasoning := min(usage.ReasoningTokens, usage.OutputTokens)
	sum := float64(usage.InputTokens-cached-written)*prices.Input +
		float64(cached)*or(prices.CacheRead, prices.Input) + float64(written)*or(prices.CacheWrite, prices.Input) +
		float64(usage.OutputTokens-reasoning)*prices.Output + float64(reasoning)*or(prices.Reasoning, prices.Output)
	return continuo.Cost{Nano: int64(math.Round(sum * perMillion * nano)), Currency: continuo.USD}
}

// of are the prices of a request with so many tokens of input.
func (p *Prices) of(input int) *Prices {
	var found *Tier
	for i := range p.Tiers {
		if tier := &p.Tiers[i]; input > tier.Tier.Size && (found == nil || tier.Tier.Size > found.Tier.Size) {
			found = tier
		}
	}
	if found == nil {
		return p
	}
	prices := found.Prices
	prices.CacheRead = scaled(prices.CacheRead, p.CacheRead, prices.Input, p.Input)
	prices.CacheWrite = scaled(prices.CacheWrite, p.CacheWrite, prices.Input, p.Input)
	prices.Reasoning = scaled(prices.Reasoning, p.Reasoning, prices.Output, p.Output)
	return &prices
}

// scaled is a tier's price, or else the base's in the ratio of two others.
func scaled(price, base *float64, tier, usual float64) *float64 {
	if price != nil || base == nil || usual == 0 {
		return price
	}
	of := *base * tier / usual
	return &of
}

func or(price *float64, otherwise float64) float64 {
	if price == nil {
		return otherwise
	}
	return *price
}

// Pricer is a continuo.PriceList: prices of its own, before those of a catalogue.
type Pricer struct {
	// Own finds the prices that override the catalogue's; nil for none.
	Own       func(provider, model string) (*Prices, bool)
	Catalogue Catalogue
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Cost is part of continuo.PriceList.
func (p Pricer) Cost(provider, model string, usage continuo.Usage) continuo.Cost {
	if p.Own != nil {
		if prices, ok := p.Own(provider, model); ok {
			return prices.Cost(usage)
		}
	}
	found, _ := p.Catalogue.Find(provider, model)
	now := time.Now
	if p.Now != nil {
		now = p.Now
	}
	return found.PricesAt(now()).Cost(usage)
}
