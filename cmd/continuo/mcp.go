package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/mcpserver"
)

type mcpCommand struct{}

func (mcpCommand) Help() string {
	return `Speaks the Model Context Protocol on standard input and output, for clients that start their servers: tools to give work away with its history (create_real_task, deploy_headless_agent, get_agent_output and others), to search conversations and to see what a model is shown of them, and conversations, transcripts and prompts of tasks as resources. Log lines go to standard error. It ends when standard input does. Agents at work then have a second; the work of the others is left, and continuo serve with the same store, or the next continuo mcp, continues with it from the log. Agents of continuo serve, which speaks MCP at /mcp as well, work without a break.

An entry of a client's settings:

    {"mcpServers": {"continuo": {"command": "continuo", "args": ["mcp"]}}}

Examples:

    continuo mcp
    continuo mcp --store shared.db --project work
    continuo mcp --set log.level=debug 2> mcp.log`
}

// Run serves until standard input ends or a signal comes.
func (mcpCommand) Run(ctx context.Context, a *app) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	logger := newLogger(settings.Log, a.console)
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, stays: true, logger: logger})
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop() // not before the processes of the agents have ended
	defer w.watch(ctx)()
	trail := w.auditTrail(logger)
	defer trail.Close()
	server := mcpserver.New(w.engine, mcpserver.Options{
		Version: readVersion().Version, Logger: logger, Audit: trail, AuditReads: settings.Audit.Reads, Caller: audit.Caller{Origin: audit.OriginMCP},
	})
	pipe := newMCPPipe(a.in, a.out, int(settings.Server.MaxBodyBytes), settings.Server.ShutdownTimeout)
	err = server.Run(ctx, continuo.Scope{ProjectID: settings.Project}, &mcp.IOTransport{Reader: pipe, Writer: pipe, MaxLineLength: -1})
	ending, cancel := context.WithTimeout(ctx, hangUpPatience) // a signal ends it at once
	defer cancel()
	w.engine.Drain()
	_ = w.engine.Close(ending) // never fails; what still runs at the end of patience is interrupted
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil // the client has closed the pipe, or a signal came
	}
	return err
}

// hangUpPatience is how long running agents have after the client has closed the pipe: clients then send a signal about
// two seconds later, and kill soon after.
const hangUpPatience = time.Second
