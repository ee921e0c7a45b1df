package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"

	"github.com/alecthomas/kong"

	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/window"
)

// cli is the grammar of the command line: kong reads it, each command has its own file.
type cli struct {
	globals

	Serve         serveCommand         `cmd:"" help:"Run the server: POST /chat, the API under /api, metrics."`
	Launch        launchCommand        `cmd:"" help:"Start a coding agent whose requests go through Continuo."`
	Chat          chatCommand          `cmd:"" help:"Chat in the terminal, over the local store."`
	RunCommand    runCommand           `cmd:"" name:"run" help:"Run workflows: start, list, show, resume, repair, stop, cancel, approve."`
	Workflow      workflowCommand      `cmd:"" help:"List, show, check and write workflows."`
	Crew          crewCommand          `cmd:"" help:"Work with crews, agents that share one conversation: list, run, status, stop, resume, reset, restore, context, init, schema."`
	Telegram      telegramCommand      `cmd:"" help:"Connect a crew to a chat on Telegram."`
	Task          taskCommand          `cmd:"" help:"Hand tasks off to agents: create, list, show, prompt, deploy, logs, kill."`
	Conversations conversationsCommand `cmd:"" help:"List, show, rename, fork, archive, redact and delete conversations."`
	Ls            listCommand          `cmd:"" help:"List conversations, as conversations list does."`
	Show          showCommand          `cmd:"" help:"Show a conversation, as conversations show does."`
	Rm            deleteCommand        `cmd:"" help:"Delete conversations, as conversations delete does."`
	Eval          evalCommand          `cmd:"" help:"Measure recall on annotated questions."`
	Recall        recallCommand        `cmd:"" help:"Show why entries are recalled for a message, or not."`
	Context       contextCommand       `cmd:"" help:"Show which entries of a conversation a model is shown, and why."`
	Transcript    transcriptCommand    `cmd:"" help:"Write a conversation as a text."`
	Search        searchCommand        `cmd:"" help:"Find entries by their text."`
	Memory        memoryCommand        `cmd:"" help:"What is known of users: list, show, remember, forget, correct, derive, export, import."`
	MCP           mcpCommand           `cmd:"" name:"mcp" help:"Serve the Model Context Protocol on standard input and output."`
	Import        importCommand        `cmd:"" help:"Add conversations from files."`
	Export        exportCommand        `cmd:"" help:"Write conversations to files."`
	Keys          keysCommand          `cmd:"" help:"Create, list and revoke API keys of the server."`
	Usage         usageCommand         `cmd:"" help:"Add up what requests to models used and cost."`
	Audit         auditCommand         `cmd:"" help:"Show who read and changed what."`
	Replay        replayCommand        `cmd:"" help:"Answer recorded messages again with another model, view or budget, and compare."`
	Projects      projectsCommand      `cmd:"" help:"List projects."`
	StoreCommand  storeCommand         `cmd:"" name:"store" help:"Copy a store into another one, and check one."`
	Doctor        doctorCommand        `cmd:"" help:"Check settings, store and models."`
	Init          initCommand          `cmd:"" help:"Write a settings file, and say what to do next."`
	ConfigCommand configCommand        `cmd:"" name:"config" help:"Print, change and check settings."`
	Health        healthCommand        `cmd:"" help:"Ask the running server whether it is ready."`
	Licenses      licensesCommand      `cmd:"" help:"Print the licences of the modules that this program contains."`
	Version       versionCommand       `cmd:"" help:"Print the version."`
	Completion    completionCommand    `cmd:"" help:"Write a completion script for a shell."`
	Complete      completeCommand      `cmd:"" hidden:"" help:"Write completions for the scripts."`
	Man           manCommand           `cmd:"" hidden:"" help:"Write manual pages."`
}

// globals are the flags that every command has.
type globals struct {
	Config  string            `placeholder:"FILE" group:"Global flags:" help:"Settings file. Default: ./continuo.yaml, else ~/.config/continuo/continuo.yaml."`
	Store   *string           `placeholder:"PATH" group:"Global flags:" help:"SQLite file of the logs (store.path), also instead of a database."`
	Project *string           `placeholder:"NAME" group:"Global flags:" help:"Project of the conversations (project)."`
	Set     map[string]string `mapsep:"none" placeholder:"KEY=VALUE" group:"Global flags:" help:"Any setting, such as context.max_messages=40; may be repeated. continuo doctor lists them."`

	ShowVersion kong.VersionFlag `name:"version" group:"Global flags:" help:"Print the version and exit."`
}

// app is one run of the program.
type app struct {
	*console
	env     []string
	globals *globals
	parser  *kong.Kong
	used    *config.Config // of the store that the command opened; nil for none
}

// run parses a command line and runs the command that it names. env is in the form of os.Environ.
func run(ctx context.Context, c *console, args, env []string) error {
	var grammar cli
	parser, err := newParser(&grammar, c)
	if err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	if len(args) == 0 {
		c.text(overview)
		return nil
	}
	if args[0] == "help" {
		if args = append(slices.Clone(args[1:]), "--help"); len(args) > 1 {
			if named, err := kong.Trace(parser, args[:len(args)-1]); err == nil && named.Error != nil {
				return &usageError{explain(named.Error, named)}
			}
		}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		if parsing := (*kong.ParseError)(nil); errors.As(err, &parsing) {
			err = explain(err, parsing.Context)
		}
		return &usageError{err}
	}
	return execute(ctx, parsed, &app{console: c, env: env, globals: &grammar.globals, parser: parser})
}

// execute runs the command that was parsed. The services are built if the command asks for them; its method check, if
// it has one, is called before.
func execute(ctx context.Context, parsed *kong.Context, a *app) error {
	if command, ok := parsed.Selected().Target.Addr().Interface().(interface{ check() error }); ok {
		if err := command.check(); err != nil {
			return err
		}
	}
	subject := &audit.Subject{}
	parsed.BindTo(audit.WithSubject(ctx, subject), (*context.Context)(nil))
	closeServices := func() {}
	defer func() { closeServices() }()
	err := parsed.BindSingletonProvider(func() (*services, error) {
		w, err := a.wire(ctx)
		if err == nil {
			closeServices = w.Close
		}
		return w, err
	})
	if err != nil {
		return fmt.Errorf("prepare the command: %w", err)
	}
	err = parsed.Run(a)
	closeServices()
	a.recordCommand(ctx, parsed, subject, err)
	return err
}

func newParser(grammar *cli, c *console) (*kong.Kong, error) {
	parser, err := kong.New(grammar,
		kong.Name("continuo"),
		kong.Description(about+"\n\nExit codes:\n\n"+exitHelp()),
		kong.Writers(c.out, c.err),
		kong.Exit(os.Exit),
		kong.Vars{"views": strings.Join(window.Names(), ","), "turnviews": strings.Join(window.Names(), ", "), "allviews": strings.Join(catalog.ViewNames(), ", "), "usualview": usualView, "version": "continuo " + readVersion().Version},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err == nil {
		parser.Model.HelpFlag.Group = &kong.Group{Key: "Global flags:", Title: "Global flags:"}
	}
	return parser, err
}

const about = `Continuo keeps one append-only log per conversation and builds every model request from it, under a budget, with a plan that says what was kept, shortened or left out, and why.

Settings come from continuo.yaml, then from variables CONTINUO_…, then from flags; the later one wins.`

const overview = `Continuo keeps one log per conversation and builds every model request from it.

  continuo chat                       chat in the terminal; needs no key
  continuo serve                      run the server on http://127.0.0.1:8787
  continuo run start example          run a workflow, step by step
  continuo crew run                   chat with a crew of agents
  continuo import FILE…               add conversations that you have
  continuo ls                         see what there is
  continuo search WORDS…              find what was said
  continuo context show CONV          see what a model is shown, and why
  continuo replay CONV --model NAME   compare another model, view or budget
  continuo init                       write continuo.yaml, with a model
  continuo doctor                     check settings, store and models

All commands: continuo --help. One command: continuo COMMAND --help.
`

// flag is a setting that a command's own flag sets; a nil value means that the flag was not given.
type flag struct {
	key, name string
	value     *string
}

// loadSettings loads the settings; flags are those of the command.
func (a *app) loadSettings(flags ...flag) (*config.Config, error) {
	options := config.Options{File: a.globals.Config, Env: a.env, Views: window.Names(), Flags: map[string]string{}, FlagNames: map[string]string{}}
	for key, value := range a.globals.Set {
		options.Flags[key] = value
	}
	if _, given := options.Flags["store.url"]; a.globals.Store != nil && !given { // a database in the settings is not the named store
		options.Flags["store.url"], options.FlagNames["store.url"] = "", "store"
	}
	all := append([]flag{{"store.path", "store", a.globals.Store}, {"project", "project", a.globals.Project}}, flags...)
	for _, f := range all {
		if f.value != nil {
			options.Flags[f.key], options.FlagNames[f.key] = *f.value, f.name
		}
	}
	settings, err := config.Load(options)
	if err != nil {
		return nil, &usageError{err}
	}
	a.noteIgnored(settings.Ignored())
	return settings, nil
}

// noteIgnored warns of variables of the environment that are no settings: those that resemble no setting in one line,
// because a cluster sets many.
func (a *app) noteIgnored(variables []config.IgnoredVariable) {
	note := a.notePaint.Yellow("note:")
	var others []string
	for _, variable := range variables {
		if variable.Advice == "" {
			others = append(others, variable.Name)
			continue
		}
		a.note("%s the environment variable %s is no setting and is ignored: %s", note, variable.Name, variable.Advice)
	}
	if len(others) > 0 {
		a.note("%s these environment variables are no settings and are ignored: %s", note, strings.Join(others, ", "))
	}
}
