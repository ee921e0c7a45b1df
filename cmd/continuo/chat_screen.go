package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// hasScreen reports whether the chat is shown as a screen: on a terminal that can draw.
func (t *chatSession) hasScreen() bool {
	_, isFile := t.in.(*os.File)
	_, isChecked := t.out.(*checkedWriter)
	return !t.plain && !t.isDumb && isFile && isChecked
}

// runScreen shows the chat as a screen until the person leaves.
func (t *chatSession) runScreen(ctx context.Context, pick bool, remarks *remarks) error {
	terminal, in, out := t.app, t.in.(*os.File), t.out.(*checkedWriter)
	backend := newScreenBackend(t)
	options := chatscreen.Options{Notes: t.screenNotes(), Editor: cmp.Or(envValue(t.env, "VISUAL"), envValue(t.env, "EDITOR")), Pick: pick}
	env := t.env
	if !t.paint {
		env = append(slices.Clone(env), "NO_COLOR=1") // whatever text the person's variable has
	}
	screen := chatscreen.NewScreen(ctx, backend, options, in, out.file, env)
	terminal.err = screen.Notes()
	remarks.to(screen.Notes())
	left := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-left:
				return
			case got := <-t.signals:
				cause := error(nil)
				if got == syscall.SIGTERM {
					cause = turn.ErrInterrupted
				}
				screen.Stop(cause)
			}
		}
	})
	err := screen.Run(out)
	close(left)
	watching.Wait()
	terminal.err, t.app = os.Stderr, terminal
	if err != nil {
		return err
	}
	return t.printExitNote()
}

// remarks go to the screen, once there is one.
type remarks struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *remarks) to(out io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = out
}

// say writes a remark; it is safe for concurrent use.
func (r *remarks) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		_, _ = io.WriteString(r.out, text+"\n")
	}
}

// screenNotes are what the screen says first.
func (t *chatSession) screenNotes() []string {
	notes := t.startNotes()
	if words := t.settings.MissingKey(); words != "" {
		notes = append(notes, words)
	}
	if t.conversation.ID == "" {
		notes = append(notes, "/help lists commands and keys. Alt-Enter begins a new line, @ names a file, Ctrl-O opens another conversation.")
	}
	return notes
}

// screenBackend is a chat behind the screen.
type screenBackend struct {
	mu     sync.Mutex // guards session and what it writes
	chat   *chatSession
	output *bytes.Buffer
	result *chatscreen.Result

	known        sync.Mutex // guards what is known of the chat while it is in use
	state        chatscreen.State
	conversation continuo.Conversation
}

// newScreenBackend makes the output of a chat's commands that of the screen.
func newScreenBackend(t *chatSession) *screenBackend {
	b := &screenBackend{chat: t, output: &bytes.Buffer{}}
	screened, own := *t.app, *t.console
	own.out, own.err = b.output, b.output
	screened.console = &own
	t.app, t.screen = &screened, b
	b.look(context.Background())
	return b
}

// look notes the state of the chat.
func (b *screenBackend) look(ctx context.Context) {
	t := b.chat
	mode, agent := t.modeAndAgent()
	state := chatscreen.State{ID: t.conversation.ID, Name: cmp.Or(nameOf(t.conversation), t.session), Title: cmp.Or(t.conversation.Title, t.title), Agent: agent, View: t.view, Model: t.modelName(agent)}
	if mode != continuo.ModeChat {
		state.Mode = string(mode)
	}
	if broken, err := t.broken(ctx); err == nil && broken != nil {
		state.Broken = string(broken.Reason)
	}
	b.known.Lock()
	defer b.known.Unlock()
	b.state, b.conversation = state, t.conversation
}

// State is part of chatscreen.Backend.
func (b *screenBackend) State() chatscreen.State {
	b.known.Lock()
	defer b.known.Unlock()
	return b.state
}

// shownEntries is how many entries of a conversation the screen shows when it is opened.
const shownEntries = 300

// Entries is part of chatscreen.Backend.
func (b *screenBackend) Entries(ctx context.Context) ([]continuo.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries(ctx)
}

func (b *screenBackend) entries(ctx context.Context) ([]continuo.Entry, error) {
	if b.chat.conversation.ID == "" {
		return nil, nil
	}
	if err := b.chat.refresh(ctx); err != nil {
		return nil, err
	}
	return b.chat.newest(ctx, b.chat.conversation, shownEntries)
}

// Take is part of chatscreen.Backend.
func (b *screenBackend) Take(ctx context.Context, line string, width int) (chatscreen.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.output.Reset()
	b.result, b.chat.width = &chatscreen.Result{}, width
	before := b.chat.conversation.ID
	err := b.chat.take(ctx, line)
	if errors.Is(err, errLeave) {
		b.result.Leave, err = true, nil
	}
	b.result.Output = b.output.String()
	if now := b.chat.conversation.ID; now != before && before != "" && !b.result.Changed && err == nil {
		b.result.Changed = true
		b.result.Entries, err = b.entries(ctx)
	}
	b.look(ctx)
	if err != nil {
		err = &plainError{err}
	}
	return *b.result, err
}

// begin begins a turn whose events the screen shows.
func (b *screenBackend) begin(ctx context.Context, begin func(context.Context) (*engine.Chat, error)) error {
	chat, err := begin(ctx)
	if err != nil {
		return err
	}
	if err := b.chat.setConversation(ctx, chat.Conversation); err != nil {
		return err
	}
	b.result.Events = func(yield func(turn.Event, error) bool) {
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			ended := context.WithoutCancel(ctx)
			_ = b.chat.refresh(ended) // else the screen shows the previous state
			b.look(ended)
		}()
		chat.Events(yield)
	}
	return nil
}

// changed gives the screen the entries of the conversation as they are before the turn that may follow.
func (b *screenBackend) changed(ctx context.Context) error {
	var err error
	b.result.Changed = true
	b.result.Entries, err = b.entries(ctx)
	return err
}

// Open is part of chatscreen.Backend.
func (b *screenBackend) Open(ctx context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.chat.open(ctx, id)
	b.look(ctx)
	return err
}

func (b *screenBackend) current() continuo.Conversation {
	b.known.Lock()
	defer b.known.Unlock()
	return b.conversation
}

// Decide is part of chatscreen.Backend.
func (b *screenBackend) Decide(ctx context.Context, asked turn.Event, decision turn.Decision) error {
	found, err := b.chat.engine.Turns.Get(ctx, b.current(), asked.TurnID)
	if err == nil {
		err = b.chat.engine.Turns.Decide(ctx, found, asked.Call.ID, decision)
	}
	return err
}

// Waits is part of chatscreen.Backend.
func (b *screenBackend) Waits(ctx context.Context, asked turn.Event) bool {
	found, err := b.chat.engine.Turns.Get(ctx, b.current(), asked.TurnID)
	return err != nil || b.chat.waits(ctx, found, *asked.Call)
}

// Figures is part of chatscreen.Backend.
func (b *screenBackend) Figures(ctx context.Context) (chatscreen.Figures, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var figures chatscreen.Figures
	shown, err := b.chat.nextContext(ctx)
	if err != nil || shown == nil {
		return figures, err
	}
	totals := shown.Plan.Totals
	figures.Shown, figures.Messages = int64(totals.Kept), totals.Entries-forPeopleOnly(shown.Plan)
	figures.Tokens, figures.TokenLimit, figures.PromptTokens = totals.Tokens, shown.Plan.Limits.Tokens, totals.PromptSize.Tokens
	rows, err := b.chat.engine.Conversations.Rows(ctx, []continuo.Conversation{b.chat.conversation})
	if err != nil || len(rows) == 0 {
		return figures, err
	}
	used := rows[0].Usage
	figures.Input, figures.Cached, figures.Output = used.InputTokens, used.CachedTokens, used.OutputTokens
	if used.Cost != nil && used.Cost.Nano > 0 {
		figures.Cost = chatscreen.CostText(*used.Cost)
		if used.UnpricedRequests > 0 {
			figures.Cost += " + " + term.Count(used.UnpricedRequests, "request") + " without a price"
		}
	}
	return figures, nil
}

// History is part of chatscreen.Backend.
func (b *screenBackend) History(ctx context.Context) ([]string, error) {
	return b.chat.pastMessages(ctx, b.current())
}

// Complete is part of chatscreen.Backend.
func (b *screenBackend) Complete(ctx context.Context, line string) []chatscreen.Completion {
	return b.chat.completions(ctx, line)
}

// Conversations is part of chatscreen.Backend.
func (b *screenBackend) Conversations(ctx context.Context, words string) ([]chatscreen.Choice, error) {
	return b.chat.choices(ctx, words)
}
