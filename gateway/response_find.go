package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// foundResponse is a response in the log.
type foundResponse struct {
	ref          responseRef
	conversation continuo.Conversation
	turn         continuo.Turn
	echo         *responseEcho
	entries      []continuo.Entry // of the turn
	last         int64            // seq of the newest of them
}

// find finds a response that is stored, or any where unstored says so; continuo.ErrNotFound.
func (a *responsesAPI) find(ctx context.Context, ref responseRef, unstored bool) (*foundResponse, error) {
	found := &foundResponse{ref: ref, last: ref.first - 1}
	var err error
	if found.conversation, err = a.engine.Conversations.Find(ctx, a.scope, ref.conversation); err != nil {
		return nil, err
	}
	if _, err := a.engine.Conversations.Mark(ctx, ref.conversation, deletedMark(ref.turn)); !errors.Is(err, continuo.ErrNotFound) {
		return nil, errors.Join(err, continuo.ErrNotFound)
	}
	if found.turn, err = a.engine.Turns.Get(ctx, found.conversation, ref.turn); err != nil {
		return nil, err
	}
	for entry, err := range a.engine.Conversations.Read(ctx, found.conversation, continuo.Range{From: ref.first}) {
		if err != nil {
			return nil, err
		}
		if entry.TurnID != ref.turn {
			break
		}
		if echo, ok := echoOf(&entry); ok && found.echo == nil {
			found.echo = echo
		}
		found.entries, found.last = append(found.entries, entry), entry.Seq
	}
	if found.echo == nil || !found.echo.stored() && !unstored {
		return nil, continuo.ErrNotFound
	}
	return found, nil
}

// deletedMark is the mark of a turn whose response a client deleted.
func deletedMark(turnID string) string { return "response deleted " + turnID }

// findByPath finds the response that a request names.
func (a *responsesAPI) findByPath(r *http.Request) (*foundResponse, error) {
	id := r.PathValue("id")
	missing := &api.Problem{Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "response_not_found", Message: fmt.Sprintf("there is no response %s", api.Bounded(id))}
	ref, ok := parseResponseID(id)
	if !ok {
		return nil, missing
	}
	found, err := a.find(r.Context(), ref, false)
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrBadRange) {
		return nil, missing
	}
	return found, err
}

// response is a stored response as it is now.
func (f *foundResponse) response(encrypted bool) *wireResponse {
	response := f.echo.response(f.ref.String(), createdAt(f.turn.ID))
	var answer *continuo.Entry
	list := itemList{items: firstMCPItems(f.ref.conversation, f.ref.first, f.echo.MCP, f.entries)}
	for i := range f.entries {
		entry := &f.entries[i]
		if _, ofMCP := list.open[entry.ToolCallID]; ofMCP && entry.Role == continuo.Tool {
			list.add(entry)
			continue
		}
		if entry.Role != continuo.Assistant || entry.Round == nil && entry.Error == nil {
			continue
		}
		answer = entry
		if entry.Error != nil && entry.Content.IsEmpty() && entry.Reasoning == nil && len(entry.ToolCalls) == 0 {
			continue
		}
		shown := *entry
		shown.Hidden = false
		list.add(&shown)
	}
	items := list.items
	if !encrypted {
		items = withoutEncrypted(items)
	}
	for _, item := range items {
		response.Output = append(response.Output, item.raw)
	}
	if f.turn.State == continuo.TurnRunning {
		return response
	}
	at := f.turn.EndedAt
	if answer != nil {
		at = answer.CreatedAt
	}
	response.end(answer, f.turn.Usage, seconds(at))
	return response
}
