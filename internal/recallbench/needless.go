package recallbench

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// Recalled is what the turns of a conversation would have recalled.
type Recalled struct {
	Turns  int // messages of users after which the window leaves something out
	Blocks []Block
}

// Block is one recall.
type Block struct {
	Message string
	Items   []continuo.RecallItem
	Text    string
}

// console is the name of messages that a program's terminal wrote.
const console = "console"

// Replay goes through a conversation, and makes before each message of a user what a turn would have recalled for it.
func Replay(ctx context.Context, c *evidence.Conversation, view string, threshold int) (found Recalled, err error) {
	err = Open(nil).with(ctx, func(store maintenance.Store) error {
		found, err = replay(ctx, store, c, view, threshold)
		return err
	})
	return found, err
}

func replay(ctx context.Context, store maintenance.Store, c *evidence.Conversation, view string, threshold int) (found Recalled, err error) {
	log := continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
	views := window.DefaultSettings()
	e, err := newEngine(log, store, engine.Options{Views: &views, RecallThreshold: threshold})
	if err != nil {
		return found, err
	}
	defer e.Close(ctx)
	conversation, err := log.Create(ctx, continuo.Conversation{})
	if err != nil {
		return found, err
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != continuo.User && m.Role != continuo.Assistant || m.Text() == "" {
			continue
		}
		entry := continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name, CreatedAt: m.At()}
		if m.Role == continuo.User && m.Name != console && conversation.LastSeq > 0 {
			shown, err := e.Contexts.Build(ctx, conversation, engine.ContextRequest{View: view, Query: m.Text()})
			if err != nil {
				return found, err
			}
			if shown.Plan.Totals.Dropped+shown.Plan.Totals.Recalled > 0 {
				found.Turns++
			}
			blocks := shown.Plan.Blocks()
			if len(blocks) > 0 && blocks[len(blocks)-1].ID == "" {
				made := *blocks[len(blocks)-1]
				found.Blocks = append(found.Blocks, Block{Message: m.Text(), Items: made.Recall.Items, Text: made.Content.String()})
				made.Seq, made.Chars, made.Tokens, made.Tokenizer = 0, 0, 0, ""
				if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{made}, continuo.AppendOptions{}); err != nil {
					return found, err
				}
			}
		}
		if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
			return found, err
		}
		if conversation, err = log.Conversation(ctx, conversation.ID); err != nil {
			return found, err
		}
	}
	return found, nil
}

// ReplayCrew replays a conversation for a crew of one silent role with a view of a kind and 6 000 tokens: in each cycle so many
// messages are new to it at least, the last one a user's. It returns how many of its requests leave something out, and what was recalled for them.
func ReplayCrew(ctx context.Context, c *evidence.Conversation, kind string, perCycle int) (found Recalled, err error) {
	err = Open(nil).with(ctx, func(store maintenance.Store) error {
		found, err = replayCrew(ctx, store, c, kind, perCycle)
		return err
	})
	return found, err
}

func replayCrew(ctx context.Context, store maintenance.Store, c *evidence.Conversation, kind string, perCycle int) (found Recalled, err error) {
	setting := Setting{View: contexts.RoleViewPrefix + kind, Tokens: replayTokens}
	roles, err := newCrew([]Setting{setting}, false)
	if err != nil {
		return found, err
	}
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := newEngine(log, store, roles.withCrew(engine.Options{}))
	if err != nil {
		return found, err
	}
	defer e.Close(ctx)
	conversation, err := log.Create(ctx, continuo.Conversation{})
	if err != nil {
		return found, err
	}
	said := 0
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != continuo.User && m.Role != continuo.Assistant || m.Text() == "" || m.Name == console {
			continue
		}
		if said++; said < perCycle || m.Role != continuo.User {
			entry := continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name, CreatedAt: m.At()}
			if _, err := log.Append(ctx, conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
				return found, err
			}
			continue
		}
		said = 0
		before, err := log.Conversation(ctx, conversation.ID)
		if err != nil {
			return found, err
		}
		if conversation, err = roles.send(ctx, e, log, conversation, m.Text()); err != nil {
			return found, err
		}
		if err := found.addCycle(ctx, e, log, conversation, before.LastSeq, roleName(&setting)); err != nil {
			return found, err
		}
	}
	return found, nil
}

const replayTokens = 6_000

// addCycle adds the turn of a role after a seq.
func (r *Recalled) addCycle(ctx context.Context, e *engine.Engine, log *continuo.Log, conversation continuo.Conversation, after int64, role string) error {
	shown, err := e.Contexts.Build(ctx, conversation, engine.ContextRequest{View: contexts.RoleViewPrefix + role, Crew: crewID(false)})
	if err != nil {
		return err
	}
	if totals := shown.Plan.Totals; totals.Dropped+totals.Summarized+totals.Recalled > 0 {
		r.Turns++
	}
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: after + 1}) {
		if err != nil {
			return err
		}
		if entry.HoldsRecall() {
			r.Blocks = append(r.Blocks, Block{Message: entry.Recall.Query, Items: entry.Recall.Items, Text: entry.Content.String()})
		}
	}
	return nil
}
