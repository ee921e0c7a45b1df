package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/internal/clients"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/server"
)

type launchCommand struct {
	Agent     string   `arg:"" enum:"claude,codex,gemini,opencode,pi,qwen" help:"The agent: claude, codex, gemini, opencode, pi or qwen."`
	Arguments []string `arg:"" optional:"" passthrough:"" help:"Its arguments, after --."`
	Server    string   `placeholder:"URL" help:"A server that runs already, such as http://127.0.0.1:8787. Default: one of its own, for as long as the agent runs."`
	Print     bool     `help:"Print the variables and the command instead, for a server that runs already."`
}

func (launchCommand) Help() string {
	return `Starts a coding agent whose model requests go through Continuo, so that its sessions are in the log. The agent's own configuration is not changed: it gets variables of the environment, or arguments. Requests go where the settings say (models, upstreams), or else to the vendors whose keys are in the environment. When the agent ends, it says what was recorded.

Examples:

    continuo launch claude
    continuo launch codex -- exec "Fix the failing test"
    continuo launch --print qwen`
}

// agentRow is an agent, and what only its start needs.
type agentRow struct {
	clients.Agent
	// extension is the text of a file that the agent loads by an argument; "" for none.
	extension string
	// needs says what the agent lacks when it ends with an exit code.
	needs map[int]string
}

// geminiLogin is what Gemini CLI does not say: with an address and no settings, version 0.61.0 chooses a kind of login
// that it then refuses, and the file of settings that a variable can name must belong to root.
const geminiLogin = `Gemini CLI has no usable login: start it without Continuo once and choose "Use Gemini API Key", or have {"security": {"auth": {"selectedType": "gemini-api-key"}}} in ~/.gemini/settings.json; the key is in GEMINI_API_KEY`

// piExtension points pi's providers at a server, which its variables and arguments cannot.
//
//go:embed launch_pi.ts
var piExtension string

// extended returns the first arguments of an agent that loads an extension, whose file is in the user's cache.
func (r agentRow) extended() ([]string, error) {
	if r.extension == "" {
		return nil, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("launch %s: %w", r.Program, err)
	}
	path := filepath.Join(cache, "continuo", "launch_"+r.Program+".ts")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("launch %s: %w", r.Program, err)
	}
	if err := os.WriteFile(path, []byte(r.extension), 0o600); err != nil {
		return nil, fmt.Errorf("launch %s: %w", r.Program, err)
	}
	return []string{"-e", path}, nil
}

// launchable is the agent with an id, which the command's arguments have checked.
func launchable(id string) agentRow {
	agent, _ := clients.Find(id)
	row := agentRow{Agent: agent}
	switch id {
	case "gemini":
		row.needs = map[int]string{41: geminiLogin}
	case "pi":
		row.extension = piExtension
	}
	return row
}

// Run starts the agent, with a server where none was named, and waits for its end.
func (l *launchCommand) Run(ctx context.Context, a *app) error {
	row, arguments := launchable(l.Agent), l.Arguments
	if l.Server != "" && !isServerURL(l.Server) {
		return usage("--server: given %q; allowed: a URL such as http://127.0.0.1:8787", l.Server)
	}
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	extension, err := row.extended()
	if err != nil {
		return err
	}
	arguments = append(extension, arguments...)
	if l.Print {
		base := strings.TrimSuffix(cmp.Or(l.Server, "http://127.0.0.1:8787"), "/")
		for _, line := range row.Lines(base, "", arguments...) {
			a.print("%s", line)
		}
		return nil
	}
	path, err := exec.LookPath(row.Program)
	if err != nil {
		return fmt.Errorf("launch %s: %w: there is no program %s in PATH; install it, such as with %s", l.Agent, continuo.ErrNotFound, row.Program, row.Install)
	}
	if l.Server != "" {
		return a.runAgent(ctx, path, row, strings.TrimSuffix(l.Server, "/"), "", arguments)
	}
	return a.launchWithServer(ctx, path, row, arguments)
}

// launchWithServer runs an agent with a server of its own.
func (a *app) launchWithServer(ctx context.Context, path string, row agentRow, arguments []string) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler) // the terminal is the agent's
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, logger: logger, registry: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer w.Close()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	models := w.gateway(logger)
	trail := w.auditTrail(logger)
	defer trail.Close()
	httpServer := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: server.New(w.engine, server.Options{
		Gateway: models.Handler, GatewayPatterns: gateway.Patterns, Project: settings.Project, KeyPolicy: server.KeysNever,
		Audit: trail, AuditReads: settings.Audit.Reads,
		MaxBodyBytes: settings.Server.MaxBodyBytes, Logger: logger, Tracer: w.telemetry.ids, Version: readVersion().Version,
	})}
	go func() { _ = httpServer.Serve(listener) }() // ends with Close
	began := time.Now()
	failed := a.runAgent(ctx, path, row, "http://"+listener.Addr().String(), a.missingKey(settings, row), arguments)
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), settings.Server.ShutdownTimeout)
	defer cancel()
	_ = httpServer.Shutdown(ended)
	return errors.Join(failed, a.reportLaunch(ended, w, row.Program, began))
}

// missingKey is a key for an agent that does not start without one, where there is none and no upstream is sent it: a
// server of its own needs no key.
func (a *app) missingKey(settings *config.Config, row agentRow) string {
	forwards := func(u config.UpstreamConfig) bool { return u.Credentials == config.CredentialsForward }
	if row.KeyVariable == "" || envValue(a.env, row.KeyVariable) != "" || slices.ContainsFunc(slices.Collect(maps.Values(settings.Upstreams)), forwards) {
		return ""
	}
	return "none"
}

// runAgent runs an agent with the terminal of this program. A Ctrl-C is the agent's.
func (a *app) runAgent(ctx context.Context, path string, row agentRow, base, key string, arguments []string) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if row.Arguments != nil {
		arguments = slices.Concat(row.Arguments(base), arguments)
	}
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = slices.Concat(a.env, row.Env(base, key))
	command.Stdin, command.Stdout, command.Stderr = a.in, fileOf(a.out), fileOf(a.err)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	err := command.Run()
	if err == nil {
		return nil
	}
	if need := row.needs[command.ProcessState.ExitCode()]; need != "" {
		return fmt.Errorf("%s: %w: %s", row.Program, err, need)
	}
	return fmt.Errorf("%s: %w", row.Program, err)
}

// fileOf is the file of one of the console's writers, so that a program gets the terminal itself.
func fileOf(w io.Writer) io.Writer {
	if checked, ok := w.(*checkedWriter); ok {
		return checked.file
	}
	return w
}

// reportLaunch says what an agent's requests left in the log, a line for each conversation.
func (a *app) reportLaunch(ctx context.Context, w *services, program string, began time.Time) error {
	reported := false
	for _, kind := range []continuo.Kind{continuo.KindUser, continuo.KindSide} {
		conversations, err := w.log.Conversations(ctx, continuo.ConversationQuery{ProjectID: w.settings.Project, Kind: kind, Limit: 20})
		if err != nil {
			return err
		}
		for _, conversation := range conversations {
			if conversation.UpdatedAt.Before(began) || conversation.LastSeq == 0 {
				continue
			}
			if err := a.reportConversation(ctx, w, conversation, began); err != nil {
				return err
			}
			reported = true
		}
	}
	if !reported {
		a.note("continuo: no request of %s was recorded: it sent none, or all were refused", program)
		if len(w.settings.Models) == 0 && len(servedUpstreams(w.settings, a.env)) == 0 {
			a.note("continuo: only the demo model answers here: set the key of a provider (continuo init), or have the agent name the model demo, for most by: continuo launch %s -- --model demo", program)
		}
	}
	return nil
}

func (a *app) reportConversation(ctx context.Context, w *services, conversation continuo.Conversation, began time.Time) error {
	turns, err := w.engine.Turns.List(ctx, continuo.TurnQuery{ConversationID: conversation.ID, Limit: 1000})
	if err != nil {
		return err
	}
	var usage continuo.Usage
	requests := 0
	for _, turn := range turns {
		if turn.StartedAt.Before(began) {
			break // the newest come first
		}
		requests++
		usage.InputTokens += turn.Usage.InputTokens
		usage.CachedTokens += turn.Usage.CachedTokens
		usage.OutputTokens += turn.Usage.OutputTokens
	}
	cached := 0
	if usage.InputTokens > 0 {
		cached = 100 * usage.CachedTokens / usage.InputTokens
	}
	kind := ""
	if conversation.Kind != continuo.KindUser {
		kind = " (" + string(conversation.Kind) + ")"
	}
	a.note("continuo: %s%s %q: requests %d, tokens in %d (%d %% cached), out %d; continuo conversations show %s",
		conversation.ID, kind, conversation.Title, requests, usage.InputTokens, cached, usage.OutputTokens, conversation.ID)
	return nil
}
