package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/internal/config"
	recallsearch "github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
	"github.com/continuo-log/continuo/tool/mcptool"
	memorytool "github.com/continuo-log/continuo/tool/memory"
	"github.com/continuo-log/continuo/tool/search"
)

// builtIn returns Continuo's own tools, over the folder of tools.project_dir, which belongs to the settings' project. The engine is asked for
// when a tool is called.
func builtIn(settings *config.Config, log *continuo.Log, store index.Store, made func() *engine.Engine) (tool.Set, error) {
	if dir := settings.Tools.ProjectDir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, usage("tools.project_dir: there is no folder %s; make it, or correct the setting", dir)
		}
	}
	secrets, err := fs.NewSecrets(settings.Tools.ProjectDir, settings.Tools.DenyFiles, storeFiles(settings))
	if err != nil {
		return nil, usage("tools.deny_files: %w", err)
	}
	roots := fs.Roots{Log: log, ProjectDir: settings.Tools.ProjectDir, Project: settings.Project, Secrets: secrets}
	words := search.Tool{Log: log, Index: store, Searcher: func() recallsearch.Searcher { return made().Conversations.Searcher() }}
	own := tool.Set{fs.Read{Roots: roots}, fs.List{Roots: roots}, fs.Search{Roots: roots}, fs.Write{Roots: roots}, words}
	if settings.Memory.Tools {
		own = append(own, memorytool.Tools(func() memorytool.Memory { return memories.ForModels{Memories: made().Memories} })...)
	}
	return own, nil
}

// storeFiles are the files and the folder with the store's data of all projects.
func storeFiles(settings *config.Config) []string {
	var files []string
	if settings.Store.URL == "" {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			files = append(files, settings.Store.Path+end)
		}
	}
	if location := settings.Objects.Location; location != "" && !strings.Contains(location, "://") {
		files = append(files, location)
	}
	return files
}

// storeInProject warns if the store or its objects are inside the project's folder; "" if they are not.
func storeInProject(settings *config.Config) string {
	if settings.Tools.ProjectDir == "" {
		return ""
	}
	below, err := fs.NewSecrets(settings.Tools.ProjectDir, nil, []string{settings.Tools.ProjectDir})
	if err != nil {
		return ""
	}
	for _, file := range storeFiles(settings) {
		if below.IsBelow(file) {
			return file + " lies below tools.project_dir (" + settings.Tools.ProjectDir + "): models cannot read it, but programs that they run can; keep the store elsewhere"
		}
	}
	return ""
}

// policy is the policy of the section tools. A name that no tool can have is a typing error: it is refused rather than
// ignored.
func policy(settings *config.Config, known tool.Set) (tool.Policy, error) {
	policy := tool.Policy{Allow: settings.Tools.Allow, Ask: settings.Tools.Ask, Deny: settings.Tools.Deny, Otherwise: tool.Decision(settings.Tools.Otherwise)}
	return policy, checkPolicy(settings, "tools", policy, known)
}

// checkPolicy checks a policy of a section of the settings.
func checkPolicy(settings *config.Config, section string, policy tool.Policy, known tool.Set) error {
	if err := policy.Check(); err != nil {
		return usage("%s.%w", section, err)
	}
	for key, patterns := range map[string][]string{"allow": policy.Allow, "ask": policy.Ask, "deny": policy.Deny} {
		for _, pattern := range patterns {
			server, _, _ := strings.Cut(pattern, ".")
			_, ofServer := settings.MCP.Servers[server]
			if _, ok := known.Find(pattern); !ok && !ofServer && !strings.Contains(pattern, "*") {
				return usage("%s.%s: there is no tool %q; allowed: %s, and those of the servers under mcp.servers as SERVER.TOOL", section, key, pattern, strings.Join(toolNames(known), ", "))
			}
		}
	}
	return nil
}

func toolNames(tools tool.Set) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Spec().Name
	}
	return names
}

// connect starts the MCP servers of the settings concurrently. One that does not start is retried later, and logged;
// only what can never work is an error.
func connect(ctx context.Context, settings config.MCPConfig, logger *slog.Logger) ([]*mcptool.Source, error) {
	names := slices.Sorted(maps.Keys(settings.Servers))
	names = slices.DeleteFunc(names, func(name string) bool { return !settings.Servers[name].Enabled })
	sources, failures := make([]*mcptool.Source, len(names)), make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() { sources[i], failures[i] = mcptool.Connect(ctx, serverOptions(settings.Servers[name], logger)) })
	}
	starting.Wait()
	sources = slices.DeleteFunc(sources, func(source *mcptool.Source) bool { return source == nil })
	for _, err := range failures {
		if err != nil {
			for _, source := range sources {
				_ = source.Close() // never fails
			}
			return nil, err
		}
	}
	return sources, nil
}

// gateway makes the gateway of a server.
func (w *services) gateway(logger *slog.Logger) *gateway.Gateway {
	w.pool = mcptool.NewPool(mcptool.Options{Logger: logger, Version: readVersion().Version})
	return gateway.New(w.engine, w.log, w.store, gateway.Options{
		Logger: logger, MaxMessageBytes: w.settings.Server.MaxBodyBytes, Record: gateway.Record(w.settings.Gateway.Record),
		MCP: gateway.MCP{Servers: w.servers, Policy: w.engine.Catalog.Options.Policy, URLs: w.settings.Gateway.MCPURLs, Pool: w.pool},
	})
}

func serverOptions(server config.MCPServerConfig, logger *slog.Logger) mcptool.Options {
	options := mcptool.Options{
		Name: server.Name, Command: server.Command, Dir: server.Dir, URL: server.URL, Headers: server.Headers,
		CallTimeout: server.Timeout, Logger: logger, Version: readVersion().Version,
	}
	for _, name := range slices.Sorted(maps.Keys(server.Env)) {
		options.Env = append(options.Env, name+"="+server.Env[name])
	}
	return options
}
