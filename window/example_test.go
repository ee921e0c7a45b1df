package window_test

import (
	"context"
	"fmt"
	"log"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// A view of one's own: at most six messages, the first one always among them. The plan says what became of each entry.
func ExampleView() {
	ctx := context.Background()
	l := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := l.Create(ctx, continuo.Conversation{})
	if err != nil {
		log.Fatal(err)
	}
	for day := 1; day <= 8; day++ {
		_, err := l.Append(ctx, conversation.ID, []continuo.Entry{
			{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("What is for lunch on day %d?", day))},
			{Role: continuo.Assistant, Content: continuo.Text("Soup.")},
		}, continuo.AppendOptions{})
		if err != nil {
			log.Fatal(err)
		}
	}

	view := window.View{
		Name:     "lunch",
		Limits:   window.Limits{Messages: 6},
		LowWater: 0.6, // a move of the window leaves 60 % of the limits in use, so that the next messages fit
		Opener:   window.OpenerFirst,
		Marker:   window.Marker,
	}
	plan, err := view.Build(turn.Source{Context: ctx, Log: l, Conversation: conversation}, window.Input{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("shown are %d of %d entries, about %d tokens\n", plan.Totals.Kept, plan.Totals.Entries, plan.Totals.Tokens)
	for _, message := range plan.Messages { // a marker has no seq
		fmt.Println(message.Seq, message.Role, message.Content)
	}
	fmt.Println("why:")
	for _, item := range plan.Items {
		fmt.Printf("%d to %d %s: %s\n", item.Seq, max(item.Seq, item.Through), item.Verdict, item.Reason)
	}
	// Output:
	// shown are 5 of 16 entries, about 56 tokens
	// 1 user What is for lunch on day 1?
	// 0 user [Earlier messages truncated]
	// 13 user What is for lunch on day 7?
	// 14 assistant Soup.
	// 15 user What is for lunch on day 8?
	// 16 assistant Soup.
	// why:
	// 1 to 1 kept: opener
	// 2 to 12 dropped: over_messages
	// 13 to 13 kept: in_window
	// 14 to 14 kept: in_window
	// 15 to 15 kept: latest_user
	// 16 to 16 kept: in_window
}
