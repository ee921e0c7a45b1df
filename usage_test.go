package continuo_test

import (
	"testing"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

type priceList map[string]int64

func (p priceList) Cost(provider, model string, usage continuo.Usage) continuo.Cost {
	price, ok := p[provider+"/"+model]
	if !ok {
		return continuo.Cost{}
	}
	return continuo.Cost{Nano: price * int64(usage.InputTokens), Currency: continuo.USD}
}

// A request is priced when its answer is stored. What an entry says that it cost stays; the caller's entry is unchanged.
func TestAnswersArePriced(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Prices: priceList{"v/m": 3}})
	conversation, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(model string, cost continuo.Cost) continuo.Entry {
		return continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("x"), Round: &continuo.Round{
			View: "chat", ViewHash: "h", At: 1, Window: continuo.Window{Epoch: 1, Start: 1}, Provider: "v", Model: model,
			Usage: &continuo.Usage{InputTokens: 10, Cost: cost},
		}}
	}
	own := continuo.Cost{Nano: 8, Currency: "EUR"}
	given := []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("q")}, answer("m", continuo.Cost{}), answer("other", continuo.Cost{}), answer("m", own),
	}
	stored, err := log.Append(t.Context(), conversation.ID, given, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []continuo.Cost{{Nano: 30, Currency: continuo.USD}, {}, own} {
		if got := stored[i+1].Round.Usage.Cost; got != want {
			t.Errorf("answer %d costs %+v, want %+v", i, got, want)
		}
	}
	if got := given[1].Round.Usage.Cost; got != (continuo.Cost{}) {
		t.Errorf("the caller's entry has %+v", got)
	}
	totals, err := log.Totals(t.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Kind: continuo.KindUser})
	if err != nil {
		t.Fatal(err)
	}
	var sum continuo.UsageCount
	for _, count := range totals.Usage {
		sum.Add(count)
	}
	if sum.CostNano != 30 || sum.Priced != 1 || sum.Requests != 3 {
		t.Errorf("in US dollars: %+v", sum)
	}
}

func TestUsageAdd(t *testing.T) {
	dollar := func(nano int64) continuo.Cost { return continuo.Cost{Nano: nano, Currency: continuo.USD} }
	for name, test := range map[string]struct {
		parts []continuo.Usage
		want  continuo.Usage
	}{
		"costs":          {[]continuo.Usage{{InputTokens: 1, Cost: dollar(2)}, {}, {OutputTokens: 3, Cost: dollar(0)}, {Cost: dollar(5)}}, continuo.Usage{InputTokens: 1, OutputTokens: 3, Cost: dollar(7)}},
		"unknown first":  {[]continuo.Usage{{InputTokens: 1}, {InputTokens: 1, Cost: dollar(2)}}, continuo.Usage{InputTokens: 2}},
		"unknown later":  {[]continuo.Usage{{InputTokens: 1, Cost: dollar(2)}, {InputTokens: 1}, {InputTokens: 1, Cost: dollar(2)}}, continuo.Usage{InputTokens: 3}},
		"two currencies": {[]continuo.Usage{{InputTokens: 1, Cost: dollar(2)}, {InputTokens: 1, Cost: continuo.Cost{Nano: 1, Currency: "EUR"}}}, continuo.Usage{InputTokens: 2}},
	} {
		var sum continuo.Usage
		for _, part := range test.parts {
			sum.Add(part)
		}
		if sum != test.want {
			t.Errorf("%s: %+v, want %+v", name, sum, test.want)
		}
	}
}
