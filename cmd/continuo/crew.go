package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

type crewCommand struct {
	List    crewListCommand    `cmd:"" help:"List crews and their roles."`
	Run     crewRunCommand     `cmd:"" help:"Send a message to a crew, and show the roles' answers."`
	Status  crewStatusCommand  `cmd:"" help:"Show the status of a crew and its roles."`
	Stop    crewStopCommand    `cmd:"" help:"Stop a cycle until a person resumes it or sends a message."`
	Resume  crewResumeCommand  `cmd:"" help:"Resume a cycle that failed, was stopped, or was abandoned by its process."`
	Reset   crewResetCommand   `cmd:"" help:"Reset a crew: its roles see no earlier entries. The entries are kept."`
	Restore crewRestoreCommand `cmd:"" help:"Undo the newest reset."`
	Context crewContextCommand `cmd:"" help:"Show which entries a role is or was shown, and why."`
	Check   crewCheckCommand   `cmd:"" help:"Report the errors of crew files."`
	Init    crewInitCommand    `cmd:"" help:"Write a commented crew to begin with."`
	Schema  crewSchemaCommand  `cmd:"" help:"Write the JSON Schema of crew files, for editors."`
}

// crewChoice names a crew and its conversation.
type crewChoice struct {
	Crew    string `arg:"" optional:"" help:"Which crew, by its id. Default: the only one in the folder of crews, or the example where there is none."`
	Session string `placeholder:"ID" help:"The conversation that it works in: id, key or @1. Default: the crew's own."`
}

// crewSession finds the crew and the conversation. If begin is true the conversation need not exist yet.
func (w *services) crewSession(ctx context.Context, choice crewChoice, begin bool) (session engine.CrewSession, err error) {
	session = engine.CrewSession{Scope: w.scope()}
	if session.Crew, err = w.crewNamed(choice.Crew); err != nil || choice.Session == "" {
		return session, err
	}
	if begin {
		session.SessionID, err = w.sessionOf(ctx, choice.Session, ownerFlag{})
		return session, err
	}
	conversation, err := w.find(ctx, choice.Session)
	session.SessionID = conversation.ID
	return session, err
}

// crewNamed is the id of the chosen crew. The file of a named crew may be gone; its record in the log is not.
func (w *services) crewNamed(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	folder := newCrewFolder(w.settings)
	builtIn := folder.builtIn
	folder.builtIn = nil
	own, problems := folder.Crews()
	switch {
	case problems != nil:
		return "", usage("the crew is ambiguous; name one, or fix the files:\n%s", problems)
	case len(own) == 1:
		return own[0].ID, nil
	case len(own) > 1:
		return "", usage("%s can be meant: name one of %s", term.Count(len(own), "crew"), strings.Join(crewIDs(own), ", "))
	}
	example, err := crew.Parse("(built in)", builtIn, folder.known)
	if err != nil {
		return "", err
	}
	return example.ID, nil
}

func crewIDs(crews []*crew.Crew) (ids []string) {
	for _, one := range crews {
		ids = append(ids, one.ID)
	}
	return ids
}

// explained adds to a not-found error of a crew its cause, or how to fix it.
func (w *services) explained(session engine.CrewSession, err error) error {
	if !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	if _, unknown := w.engine.Crews.Get(session.Crew); unknown != nil {
		return unknown
	}
	return fmt.Errorf("crew %s: %w; it has done nothing in this conversation yet: say something with continuo crew run %s, or name another one with --session", session.Crew, continuo.ErrNotFound, session.Crew)
}

// crewArgs are the arguments with which a command finds this crew and its conversation.
func crewArgs(status *engine.CrewStatus) string {
	if status.SessionID == continuo.CrewWorkflow(status.Crew) {
		return status.Crew
	}
	return status.Crew + " --session " + shellQuote(status.SessionID)
}

var shellSafe = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellQuote quotes a text for a shell, if it needs quotes.
func shellQuote(text string) string {
	if shellSafe.MatchString(text) {
		return text
	}
	return quote(term.Clean(text))
}
