package main

import (
	"context"
)

type transcriptCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	At           seq    `placeholder:"SEQ" help:"Write it as it was up to this entry. Default: the newest."`
	History      *int   `xor:"history" placeholder:"N" help:"How many messages of the history to show. Default: transcript.history_messages."`
	All          bool   `xor:"history" help:"Show the whole history."`
}

func (transcriptCommand) Help() string {
	return `Writes a conversation as a text of events: $user, $respond, $think, $call, $result. The history is cut to its newest messages; a cycle that has not ended is whole. The format can be parsed without loss.

Examples:

    continuo transcript s1
    continuo transcript s1 --all > s1.txt
    continuo transcript s1 --history 5 --at 40`
}

func (t *transcriptCommand) check() error {
	if !t.All && t.History != nil && *t.History < 1 {
		return usage("--history: given %d; allowed: a positive number, or --all instead", *t.History)
	}
	return nil
}

// Run writes the transcript.
func (t *transcriptCommand) Run(ctx context.Context, a *app, w *services) error {
	history := t.History
	if t.All {
		history = new(int)
	}
	conversation, err := w.find(ctx, t.Conversation)
	if err != nil {
		return err
	}
	transcript, _, err := w.engine.Contexts.Transcript(ctx, conversation, int64(t.At), history)
	if err != nil {
		return err
	}
	a.text(transcript.String())
	return nil
}
