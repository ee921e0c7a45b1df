package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type telegramCommand struct {
	Crew *string `placeholder:"CREW" help:"The crew (telegram.crew)."`
	Chat *string `placeholder:"ID" help:"The id of the chat (telegram.chat_id); write a negative one as --chat=-100123."`
}

func (telegramCommand) Help() string {
	return `Connects a crew to a chat on Telegram, without a server: it polls Telegram for messages, and the crew's roles answer through their bots. continuo serve does the same in addition to the API; of several processes with one store, one is active at a time. It runs until Ctrl-C or SIGTERM, waits then for running answers (server.shutdown_timeout), and a second one ends it at once.

The bots' tokens come from the environment: telegram.bot_token names the listener's variable, the crew's file those of its roles. docs/telegram.md says how to create them; continuo doctor --online verifies the tokens, the chat and the bots' rights. To find a chat's id, give any other one and write something in the chat: the command prints its id.

Examples:

    export CREW_BOT_TOKEN=123456:ABC
    continuo telegram --crew example --chat=-1001234567890 --set 'telegram.bot_token=${CREW_BOT_TOKEN}'
    continuo telegram
    continuo doctor --online`
}

// Run runs the front end until a signal comes, or Telegram refuses the listener's token.
func (c *telegramCommand) Run(ctx context.Context, a *app) error {
	settings, err := a.loadSettings(flag{"telegram.crew", "crew", c.Crew}, flag{"telegram.chat_id", "chat", c.Chat})
	if err != nil {
		return err
	}
	switch {
	case settings.Telegram.Crew == "":
		return usage("no crew is set for Telegram: set telegram.crew, or name one with --crew")
	case settings.Telegram.ChatID == 0:
		return usage("no chat is set: set telegram.chat_id, or give one with --chat; to find its id, give 1 and write something in the chat")
	case settings.Telegram.WebhookURL != "":
		return usage("telegram.webhook_url has Telegram post what people write: run continuo serve, which takes it, or take that setting out")
	}
	logger := newLogger(settings.Log, a.console)
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, logger: logger})
	if err != nil {
		return err
	}
	defer w.Close()
	frontEnd, err := telegramFrontEnd(w, a.env, logger)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	w.recoverWork(ctx, logger)
	stopWatching := w.watch(ctx)
	a.note("%s answers in chat %d on Telegram, from %s. Ctrl-C ends it.", a.notePaint.Bold("crew "+settings.Telegram.Crew), settings.Telegram.ChatID, storeText(settings.Store))
	err = frontEnd.Run(ctx)
	stop() // a second signal ends the program at once
	stopWatching()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), settings.Server.ShutdownTimeout)
	defer cancel()
	w.engine.Drain()
	_ = w.engine.Close(ending) // never fails; what still runs at the end of its time is interrupted
	if err != nil {
		return fmt.Errorf("the Telegram front end has stopped: %w", err)
	}
	return nil
}
