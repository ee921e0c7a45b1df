package main

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

// The log keeps everything: a message is taken back by going on with a fork that ends before it.

// lastMessage finds the newest message of a person.
func (t *chatSession) lastMessage(ctx context.Context) (*continuo.Entry, error) {
	if t.conversation.ID == "" {
		return nil, usage("nothing has been said yet")
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	for entry, err := range t.engine.Conversations.Read(ctx, t.conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if entry.Role == continuo.User && !entry.Hidden && entry.RunEvent == nil {
			return &entry, nil
		}
	}
	return nil, usage("this conversation has no message of a person")
}

// goBack continues in a fork that ends before the newest message, and returns that.
func (t *chatSession) goBack(ctx context.Context) (*continuo.Entry, error) {
	last, err := t.lastMessage(ctx)
	if err != nil {
		return nil, err
	}
	before := t.conversation
	if last.Seq == 1 {
		t.conversation, t.session, t.plan = continuo.Conversation{}, "", nil
	} else {
		fork, err := t.engine.Conversations.Fork(ctx, before.ID, last.Seq-1, continuo.Conversation{})
		if err != nil {
			return nil, err
		}
		t.conversation, t.session, t.plan = fork, fork.ID, nil
	}
	t.printAside("%s keeps the message and what followed; this continues before it.", nameOf(before))
	if t.screen != nil {
		err = t.screen.changed(ctx)
	}
	return last, err
}

// undo executes /undo.
func (t *chatSession) undo(ctx context.Context, _ string) error {
	_, err := t.goBack(ctx)
	return err
}

// retry executes /retry: the newest message is answered again, by another model if one is named.
func (t *chatSession) retry(ctx context.Context, argument string) error {
	if argument != "" {
		if err := t.chooseModel(argument); err != nil {
			return err
		}
	}
	last, err := t.goBack(ctx)
	if err != nil {
		return err
	}
	content, err := t.wholeContent(ctx, last)
	if err != nil {
		return err
	}
	return t.sendContent(ctx, content)
}

// edit executes /edit: the newest message is replaced.
func (t *chatSession) edit(ctx context.Context, argument string) error {
	if argument == "" && t.screen == nil {
		return usage("/edit needs the new text of the newest message")
	}
	last, err := t.goBack(ctx)
	if err != nil {
		return err
	}
	if argument != "" {
		return t.sendMessage(ctx, argument)
	}
	t.screen.result.Draft = messageText(last)
	return nil
}

// wholeContent is the content of an entry with its attachments.
func (t *chatSession) wholeContent(ctx context.Context, entry *continuo.Entry) (continuo.Content, error) {
	if len(entry.Attachments) == 0 {
		return entry.Content, nil
	}
	parts := append([]continuo.Part(nil), entry.Content.Parts()...)
	for _, attachment := range entry.Attachments {
		part, err := t.log.Attachment(ctx, entry, attachment)
		if err != nil {
			return continuo.Content{}, fmt.Errorf("read the message's attachment: %w", err)
		}
		parts[attachment.Part] = part
	}
	return continuo.Parts(parts...), nil
}

// open makes another conversation the one of the chat.
func (t *chatSession) open(ctx context.Context, name string) error {
	conversation, err := t.find(ctx, name)
	if err != nil {
		return err
	}
	t.conversation, t.session, t.title, t.plan, t.mode, t.agent = conversation, conversation.ID, "", nil, "", ""
	return nil
}

// openNamed executes /open: a conversation by its name, or the list of those that have the words.
func (t *chatSession) openNamed(ctx context.Context, argument string) error {
	if argument != "" {
		err := t.open(ctx, argument)
		if err == nil && t.screen != nil {
			return t.screen.changed(ctx)
		}
		if err == nil {
			t.printAside("%s · %s", term.OneLine(t.conversation.Title, 60), term.Count(t.conversation.LastSeq, "entry"))
			return t.history(ctx, 6)
		}
		if t.screen == nil {
			return err
		}
	}
	if t.screen != nil {
		t.screen.result.Pick, t.screen.result.Words = true, argument
		return nil
	}
	query := continuo.ConversationQuery{Kind: continuo.KindUser}
	found, _, err := t.list(ctx, 20, query)
	if err == nil {
		t.printConversations(found, query)
	}
	return err
}
