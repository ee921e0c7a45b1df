package main

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

type keyCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Key          string `arg:"" optional:"" name:"new-key" help:"The new key. Default: only show the key."`
	Remove       bool   `help:"Remove the key: the conversation is found by its id only."`
	JSON         bool   `help:"Write the conversation as JSON."`
}

func (c *keyCommand) changes() bool { return c.Key != "" || c.Remove }

func (keyCommand) Help() string {
	return `Shows, sets, changes or removes the key of a conversation. The key is the session id that clients use to continue it; the id stays, and the old key is free for another conversation. A key that another conversation has is refused.

Examples:

    continuo conversations key @1 support-4411
    continuo conversations key support-4411 support-4412
    continuo conversations key support-4412 --remove`
}

func (k *keyCommand) check() error {
	if k.Remove && k.Key != "" {
		return usage("--remove takes the key away: leave the new key out")
	}
	return nil
}

// Run shows or changes the key.
func (k *keyCommand) Run(ctx context.Context, a *app, w *services) error {
	conversation, err := w.find(ctx, k.Conversation)
	if err == nil && (k.Remove || k.Key != "") {
		conversation, err = w.engine.Conversations.Change(ctx, w.scope(), conversation.ID, continuo.ConversationChange{Key: &k.Key})
	}
	if err != nil {
		return err
	}
	if k.JSON {
		return a.json(conversation)
	}
	if conversation.Key == "" {
		a.print("%s has no key", conversation.ID)
		return nil
	}
	a.print("%s has the key %s", conversation.ID, conversation.Key)
	return nil
}
