package main

import (
	"cmp"
	"context"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/term"
)

// Where earlier messages come from: the newest entries of the newest conversations.
const (
	pastConversations = 30
	pastEntries       = 100
)

// pastMessages is what the person said in the current conversation and in others, the newest first.
func (t *chatSession) pastMessages(ctx context.Context, current continuo.Conversation) (texts []string, err error) {
	found, _, err := t.list(ctx, pastConversations, continuo.ConversationQuery{Kind: continuo.KindUser})
	if err != nil {
		return nil, err
	}
	if current.ID != "" {
		found = append([]continuo.Conversation{current}, found...)
	}
	for i, conversation := range found {
		if i > 0 && conversation.ID == found[0].ID {
			continue
		}
		entries, err := t.newest(ctx, conversation, pastEntries)
		if err != nil {
			return texts, err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			if text := messageText(&entries[i]); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}

// messageText is what a person typed; "" for every other entry.
func messageText(entry *continuo.Entry) string {
	if entry.Role != continuo.User || entry.Hidden || entry.RunEvent != nil {
		return ""
	}
	if !entry.Content.IsParts() {
		return term.Clean(entry.Content.String())
	}
	for _, part := range entry.Content.Parts() {
		if _, isFile := chatscreen.FileName(part.Text); part.IsText() && !isFile {
			return term.Clean(part.Text)
		}
	}
	return ""
}

// maxChoices is how many conversations a chat lists.
const maxChoices = 100

// choices lists conversations, the newest change first; with words, those in which they were said.
func (t *chatSession) choices(ctx context.Context, words string) ([]chatscreen.Choice, error) {
	found, _, err := t.list(ctx, maxChoices, continuo.ConversationQuery{Kind: continuo.KindUser})
	if err != nil {
		return nil, err
	}
	rows, err := t.engine.Conversations.Rows(ctx, found)
	if err != nil {
		return nil, err
	}
	var choices []chatscreen.Choice
	listed := map[string]bool{}
	for _, row := range rows {
		choice := chatscreen.Choice{ID: row.ID, Name: nameOf(row.Conversation), Title: row.Title, Entries: row.LastSeq, UpdatedAt: row.UpdatedAt, State: row.State}
		if row.Last != nil {
			choice.Last = row.Last.Text
		}
		if hasWords(choice.Name+" "+choice.Title+" "+choice.Last, words) {
			listed[row.ID] = true
			choices = append(choices, choice)
		}
	}
	if strings.TrimSpace(words) == "" {
		return choices, nil
	}
	_ = t.engine.Conversations.Index(ctx, index.Scope{ProjectID: t.settings.Project}, nil)
	result, err := t.engine.Conversations.Search(ctx, t.scope(), index.Request{Query: words, Kinds: index.KindsOf("user"), Limit: index.MaxLimit})
	if err != nil {
		return choices, nil // words that are no search yet, such as an open quotation mark
	}
	for _, item := range result.Items {
		if !listed[item.ConversationID] {
			listed[item.ConversationID] = true
			choices = append(choices, chatscreen.Choice{ID: item.ConversationID, Name: cmp.Or(item.Key, item.ConversationID), Title: item.Title, Last: item.Snippet.Text, UpdatedAt: item.CreatedAt})
		}
	}
	return choices, nil
}

// hasWords reports whether a text has all words, in any case.
func hasWords(text, words string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
