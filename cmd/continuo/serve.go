package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/inspector"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/server"
)

type serveCommand struct {
	Listen *string `placeholder:"ADDR" help:"host:port to listen on (listen); port 0 takes a free one. An address that other machines reach needs API keys."`
	Model  *string `placeholder:"NAME" help:"The default model (model)."`
}

func (serveCommand) Help() string {
	return `Runs the HTTP server: the inspector, a web page at / that shows conversations and what models were shown (server.inspector), POST /chat, the API under /api, /healthz, /readyz, /metrics and /openapi.json. Without a configured model the built-in demo model answers. Ctrl-C or SIGTERM waits for turns in progress (server.shutdown_timeout); a second one exits at once.

As soon as there is an API key (continuo keys create), every caller needs one, and only then the server listens on an address that other machines can reach. It serves plain HTTP: put a proxy that terminates TLS in front of it there.

Examples:

    continuo serve
    continuo serve --listen 127.0.0.1:9000 --set log.format=json
    continuo serve --listen 0.0.0.0:8787
    curl -s localhost:8787/chat -H content-type:application/json -d '{"session_id": "s1", "message": "Hello"}'`
}

// Run serves until a signal comes.
func (s *serveCommand) Run(ctx context.Context, a *app) error {
	settings, err := a.loadSettings(flag{"listen", "listen", s.Listen}, flag{"model", "model", s.Model})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	logger := newLogger(settings.Log, a.console)
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, stays: true, logger: logger, registry: registry})
	if err != nil {
		return err
	}
	defer w.Close()
	policy, err := w.keyPolicy(ctx)
	if err != nil {
		return err
	}
	w.recoverWork(ctx, logger)
	frontEnd, err := telegramFrontEnd(w, a.env, logger)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, settings.Listen)
	if err != nil {
		return err
	}
	trail := w.auditTrail(logger)
	defer trail.Close()
	kept := retention{w: w, trail: trail, rules: retentionRules(settings.Retention), logger: logger, removed: w.metrics.Retained, now: time.Now}
	defer w.watch(ctx, kept.run, func(ctx context.Context) { w.pruneAudit(ctx, logger) }, func(ctx context.Context) { w.pruneFeed(ctx, logger) }, func(ctx context.Context) { w.sendWebhooks(ctx, logger) }, func(ctx context.Context) {
		if frontEnd == nil {
			return
		}
		if err := frontEnd.Run(ctx); err != nil {
			logger.Error("telegram_ended", "error", err.Error())
		}
	})()
	page, err := inspectorPage(settings)
	if err != nil {
		return err
	}
	models := w.gateway(logger)
	handler := server.New(w.engine, server.Options{
		Gateway: models.Handler, GatewayPatterns: gateway.Patterns, GatewayError: gateway.WriteError, Inspector: page,
		Project: settings.Project, Keys: auth.NewChecker(w.store, auth.Options{}), KeyPolicy: policy, SessionLife: settings.Server.SessionLife, RequestsPerSecond: settings.Server.MaxRequestRate, MaxBodyBytes: settings.Server.MaxBodyBytes,
		Origins: settings.Server.CORS, BodyTimeout: settings.Server.BodyTimeout, MemoryBudget: memoryBudget(settings.Server),
		Audit: trail, AuditReads: settings.Audit.Reads, TrustedProxies: trustedProxies(settings.Server.TrustedProxies),
		Logger: logger, Tracer: w.telemetry.ids, Registry: registry, Version: readVersion().Version,
		Checks: func(ctx context.Context) ([]api.HealthCheck, *api.StoreSize) { return a.checks(ctx, w) },
		MCP:    mcpserver.New(w.engine, mcpserver.Options{Version: readVersion().Version, MaxBodyBytes: settings.Server.MaxBodyBytes, Logger: logger, Audit: trail, AuditReads: settings.Audit.Reads}).Handler,
	})
	address := listener.Addr().String()
	listener = server.LimitConnections(listener, maxConnections(settings.Server))
	err = serve(ctx, listener, withWebhook(handler, settings, frontEnd), w.engine, w.objects, settings.Server.ShutdownTimeout, logger, func() { a.serveBanner(ctx, w, policy, address) })
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for the last events of connections
	defer cancel()
	models.Wait(last)
	return err
}

// inspectorPage is the web page; nil where the settings turn it off.
func inspectorPage(settings *config.Config) (server.Inspector, error) {
	if !settings.Server.Inspector {
		return nil, nil //nolint:nilnil // there is no page, which is no error
	}
	return inspector.New()
}

// serve answers requests, announces that, and goes on until ctx is done or a signal comes, and then lets turns end for up to patience. Interrupted
// turns get half as long again for their objects; the program does not wait for an object store that hangs.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, turns *engine.Engine, objects io.Closer, patience time.Duration, logger *slog.Logger, announce func()) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	httpServer := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(listener) }()
	collectAsUsual()
	announce()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stop() // a second signal ends the program at once
	logger.Info("shutting_down", "timeout", patience.String())
	stopping, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	hangUp := time.AfterFunc(patience+patience/2, func() { _ = objects.Close() }) // it is closed again later, by then without an error
	defer hangUp.Stop()
	turns.Drain() // streams of runs end between their steps, and Shutdown waits for them
	err := httpServer.Shutdown(stopping)
	_ = turns.Close(stopping) // never fails; what still runs at the end of patience is interrupted
	if err != nil {
		err = closingText(httpServer)
	}
	<-failed
	logger.Info("stopped")
	return err
}

// closingText gives streams of interrupted turns a moment for their last events, and then closes their connections.
func closingText(httpServer *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if httpServer.Shutdown(ctx) == nil {
		return nil
	}
	if err := httpServer.Close(); err != nil {
		return fmt.Errorf("close connections: %w", err)
	}
	return nil
}

// memoryBudget is how many bytes the bodies of requests may take.
func memoryBudget(settings config.ServerConfig) int64 {
	if settings.MemoryBudgetMiB > 0 {
		return settings.MemoryBudgetMiB << 20
	}
	return availableMemory() / 4
}

// maxConnections is how many connections the server holds at once; 0 for unlimited.
func maxConnections(settings config.ServerConfig) int {
	if settings.MaxConnections > 0 {
		return settings.MaxConnections
	}
	return maxOpenFiles() / 4 * 3
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var by net.ListenConfig
	listener, err := by.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another program has this port; choose another with --listen 127.0.0.1:PORT (port 0 takes a free one)", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not allowed to use this port; choose one above 1023 with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// serveBanner prints the server's address and commands to try.
func (a *app) serveBanner(ctx context.Context, w *services, policy server.KeyPolicy, address string) {
	p, everywhere := a.notePaint, ""
	if host, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsUnspecified() {
		address, everywhere = net.JoinHostPort("127.0.0.1", port), " and every other address of this machine"
	}
	a.note("%s on %s%s", p.Bold("continuo "+readVersion().Version), p.Cyan("http://"+address), everywhere)
	t := term.NewTable(p)
	if w.settings.Server.Inspector {
		t.Fact("  inspector", p.Cyan("http://"+address+"/"))
	}
	t.Fact("  store", storeText(w.settings.Store))
	t.Fact("  objects", config.WithoutKeys(w.settings.Objects.Location))
	t.Fact("  model", modelText(w.settings, ""))
	t.Fact("  gateway", gatewayText(servedUpstreams(w.settings, a.env)))
	if ids := agentIDs(w.settings); len(ids) > 0 {
		t.Fact("  agents", countOf(ids))
	}
	if ids := w.workflows.ids(); len(ids) > 0 {
		t.Fact("  workflows", countOf(ids))
	}
	keys, demanded := w.keyPolicyText(ctx, policy)
	t.Fact("  keys", keys)
	if telegram := w.settings.Telegram; telegram.Crew != "" {
		t.Fact("  telegram", fmt.Sprintf("crew %s in chat %d", telegram.Crew, telegram.ChatID))
	}
	t.Fact("  settings", w.settings.File)
	for _, line := range t.Lines(0) {
		a.note("%s", line)
	}
	if w.settings.DefaultModel == config.DemoModel && len(w.settings.Models) == 0 {
		a.note("\nThe demo model answers from what it is shown. For a real one, run continuo init, or write to continuo.yaml:\n%s", p.Dim(term.Indent(modelExample, "  ")))
	}
	if words := storeInProject(w.settings); words != "" {
		a.note("%s %s", p.Yellow("note:"), words)
	}
	for _, hint := range w.settings.Hints() {
		a.note("%s %s", p.Yellow("note:"), hint)
	}
	if _, problems := w.workflows.Workflows(); problems != nil { // the rest of the server does not depend on them
		a.note("%s these workflows are refused until their files are fixed:\n%s", p.Yellow("note:"), term.Indent(problems.Error(), "  "))
	}
	if w.settings.Store.URL != "" && !strings.Contains(w.settings.Objects.Location, "://") {
		a.note("%s large outputs and attachments are in a folder: other replicas must see the same one, or set objects.location to a bucket", p.Yellow("note:"))
	}
	a.note("\nTry:")
	header := ""
	if demanded {
		header = ` -H "authorization: bearer $KEY"`
	}
	for _, message := range []string{"Hello, I am Ada.", "What did I say first?"} {
		a.note("  curl -s http://%s/chat -H content-type:application/json%s -d '{\"session_id\": \"s1\", \"message\": \"%s\"}'", address, header, message)
	}
	a.note("")
}

// modelExample is a section of continuo.yaml that names a real model.
const modelExample = `model: main
models:
  main:
    protocol: openai-chat
    model: gpt-4o-mini
    api_key_env: OPENAI_API_KEY`
