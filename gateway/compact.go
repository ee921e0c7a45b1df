package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// A compaction item of this server stands for a conversation up to a seq. The log has the conversation, so the item has
// only its name: any replica can continue it, and nothing of it is lost. What the model is shown of it is the view's
// decision.

// compactionIndex is the index of a compaction item among the items of the entry that it ends with, beyond those of any
// entry.
const compactionIndex = 0xffff

var compactions = regexp.MustCompile(`^continuo1_` + hexID + `([0-9a-f]{8})$`)

// compactionItem returns the item that stands for a conversation up to a seq.
func compactionItem(conversation string, seq int64) item {
	content := fmt.Sprintf("continuo1_%s%08x", strings.TrimPrefix(conversation, "conv_"), seq)
	return newItem(itemRef{conversation, seq, compactionIndex}, responses.TypeCompaction, []rawjson.Field{text("encrypted_content", content)})
}

// compacted is what a compaction item stands for.
type compacted struct {
	conversation string
	seq          int64
}

// splitCompacted finds the newest compaction item of this server, and returns the items after it. Those before it are in
// the conversation that it stands for.
func splitCompacted(items []json.RawMessage) (*compacted, []json.RawMessage) {
	for i := len(items) - 1; i >= 0; i-- {
		parsed, err := responses.ParseItem(items[i])
		if err != nil || parsed.Type != responses.TypeCompaction || parsed.EncryptedContent == nil {
			continue
		}
		if parts := compactions.FindStringSubmatch(*parsed.EncryptedContent); parts != nil {
			seq, _ := strconv.ParseInt(parts[2], 16, 64)
			return &compacted{"conv_" + parts[1], seq}, items[i+1:]
		}
	}
	return nil, items
}

// expand returns the conversation that continues a compacted one.
func (a *responsesAPI) expand(ctx context.Context, from *compacted) (continuo.Conversation, error) {
	conversation, err := a.engine.Conversations.Find(ctx, a.scope, from.conversation)
	if err == nil {
		err = conversations.TakesMessages(conversation)
	}
	if err == nil {
		conversation, err = a.continuedAt(ctx, conversation, from.seq, engine.Repeat{})
	}
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrBadRange) {
		err = api.Refuse("input", "the conversation of the compaction item does not exist any more")
	}
	return conversation, err
}

// compaction is the answer to a request for a compaction.
type compaction struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"` // "response.compaction"
	CreatedAt int64             `json:"created_at"`
	Output    []json.RawMessage `json:"output"`
	Usage     responses.Usage   `json:"usage"`
}

// compact answers POST /v1/responses/compact: with the messages of the user and one compaction item.
func (a *responsesAPI) compact(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r, false)
	if err != nil {
		return err
	}
	conversation, _, err := a.place(r.Context(), q)
	if err != nil {
		return err
	}
	entries, _, err := responses.Entries(q.items, responses.Options{Provider: q.upstream.Model.Info().Provider})
	if err != nil {
		return api.Refuse("input", "%s", err)
	}
	if conversation.ID == "" && len(entries) == 0 {
		return api.Refuse("input", "there is nothing to compact: send input or previous_response_id")
	}
	if conversation.ID == "" {
		if conversation, err = a.engine.Conversations.Create(r.Context(), a.scope, conversation); err != nil {
			return err
		}
	}
	if len(entries) > 0 {
		stored, err := a.engine.Conversations.Append(r.Context(), conversation, entries, continuo.AppendOptions{})
		if err != nil {
			return err
		}
		conversation.LastSeq = stored[len(stored)-1].Seq
	}
	items, err := a.itemsBetween(r.Context(), conversation, 1, conversation.LastSeq)
	if err != nil {
		return err
	}
	answer := compaction{
		ID: responseRef{conversation.ID, a.engine.Conversations.NewID("turn"), conversation.LastSeq}.String(), Object: "response.compaction", CreatedAt: a.engine.Conversations.Now().Unix(), Output: []json.RawMessage{},
	}
	for _, one := range items {
		if parsed, err := responses.ParseItem(one.raw); err == nil && parsed.Role == string(continuo.User) {
			answer.Output = append(answer.Output, one.raw)
		}
	}
	answer.Output = append(answer.Output, compactionItem(conversation.ID, conversation.LastSeq).raw)
	writeJSON(w, http.StatusOK, answer)
	return nil
}
