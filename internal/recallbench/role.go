package recallbench

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/model"
)

const silentModel = "silent"

// crewID is the crew that measures with or without recalls.
func crewID(off bool) string {
	if off {
		return "without"
	}
	return "with"
}

// crewOf is a crew with a role for each setting that measures the view of a role: role:KIND.
type crewOf struct{ crew *crew.Crew }

// newCrew makes the crew; one of nobody where no setting needs it.
func newCrew(settings []Setting, off bool) (crewOf, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "id: %s\nmax_rounds: 1\nroles:\n", crewID(off))
	roles := 0
	for i, setting := range settings {
		kind, isRole := strings.CutPrefix(setting.View, contexts.RoleViewPrefix)
		if !isRole || setting.Off != off {
			continue
		}
		limit := ""
		if setting.Tokens > 0 {
			limit = fmt.Sprintf(", tokens: %d", setting.Tokens)
		}
		fmt.Fprintf(&text, "  - {role_name: %s, connector: model, model: %s, system_prompt: You read along., view: {kind: %s%s}}\n", roleName(&settings[i]), silentModel, kind, limit)
		roles++
	}
	if roles == 0 {
		return crewOf{}, nil
	}
	made, err := crew.Parse(crewID(off)+".yaml", []byte(text.String()), crew.Known{Any: true})
	return crewOf{made}, err
}

// roleName is the role that a setting measures.
func roleName(setting *Setting) string {
	kind := strings.TrimPrefix(setting.View, contexts.RoleViewPrefix)
	return fmt.Sprintf("%s_%d", kind, setting.Tokens)
}

// Crew is part of crews.Source.
func (c crewOf) Crew(id string) (*crew.Crew, error) {
	if c.crew == nil || c.crew.ID != id {
		return nil, continuo.ErrNotFound
	}
	return c.crew, nil
}

// Crews is part of crews.Source.
func (c crewOf) Crews() ([]*crew.Crew, error) {
	if c.crew == nil {
		return nil, nil
	}
	return []*crew.Crew{c.crew}, nil
}

// The messages that the roles are sent before a question.
const (
	readMessage = "Please read it."
	fillMessage = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.\n"
	fillTimes   = 8
	maxFills    = 80
)

// shown has every role read a conversation, without a word, before a question is asked: where a role was shown nothing yet, all
// of it would be new. Then more is said until all windows have moved, so that those with recalls and without are alike.
func (c crewOf) shown(ctx context.Context, e *engine.Engine, log *continuo.Log, conversation continuo.Conversation) (continuo.Conversation, error) {
	if c.crew == nil {
		return conversation, nil
	}
	message := readMessage
	for range maxFills {
		var err error
		if conversation, err = c.send(ctx, e, log, conversation, message); err != nil {
			return conversation, err
		}
		stands, err := c.stands(ctx, e, conversation)
		if err != nil || !stands {
			return conversation, err
		}
		message = strings.Repeat(fillMessage, fillTimes)
	}
	return conversation, fmt.Errorf("a window of a role does not move in %d messages", maxFills)
}

// stands reports whether a window that leaves something out has not moved since the roles have read the conversation.
func (c crewOf) stands(ctx context.Context, e *engine.Engine, conversation continuo.Conversation) (bool, error) {
	for i := range c.crew.Roles {
		role := &c.crew.Roles[i]
		shown, err := e.Contexts.Build(ctx, conversation, engine.ContextRequest{View: contexts.RoleViewPrefix + role.Name, Crew: c.crew.ID})
		if err != nil {
			return false, err
		}
		isPartial := shown.Plan.Totals.Dropped+shown.Plan.Totals.Summarized > 0
		if role.View.Kind != crewview.Delta && isPartial && shown.Plan.Window.Epoch < 2 {
			return true, nil
		}
	}
	return false, nil
}

// send runs a cycle.
func (c crewOf) send(ctx context.Context, e *engine.Engine, log *continuo.Log, conversation continuo.Conversation, message string) (continuo.Conversation, error) {
	scope := continuo.Scope{ProjectID: conversation.ProjectID, UserID: conversation.UserID}
	session := engine.CrewSession{Scope: scope, Crew: c.crew.ID, SessionID: conversation.ID}
	status, err := e.Crews.Send(ctx, engine.CrewMessage{Session: session, Message: continuo.Text(message), Detached: true})
	if err != nil {
		return conversation, err
	}
	run, err := log.Runs().Run(ctx, conversation.ProjectID, status.RunID)
	if err != nil {
		return conversation, err
	}
	for _, err := range e.Crews.Follow(ctx, run, 0) {
		if err != nil {
			return conversation, err
		}
	}
	return log.Conversation(ctx, conversation.ID)
}

// withCrew adds the crew to an engine's options.
func (c crewOf) withCrew(options engine.Options) engine.Options {
	options.Crews, options.StepPause = c, time.Nanosecond
	options.Models = map[string]catalog.Upstream{silentModel: {Model: silent{}}}
	return options
}

// silent is a model that has nothing to add.
type silent struct{}

// Info is part of model.Model.
func (silent) Info() model.Info {
	return model.Info{Name: silentModel, Provider: "test", Protocol: model.ProtocolOpenAIChat}
}

// Stream is part of model.Model.
func (silent) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.Delta{Text: continuo.Placeholder}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}
