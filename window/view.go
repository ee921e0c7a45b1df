package window

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// View is a named way to show a log to a reader. Two requests share an epoch only when they were built
// by views that are equal in everything but the name: so a change of mode does not move the window.
type View struct {
	Name   string `json:"name"`
	Limits Limits `json:"limits"`
	// LowWater is the share of the limits that a move of the window leaves in use: 0 < LowWater <= 1.
	// At 1 the window slides with every message.
	LowWater float64 `json:"low_water"`
	Opener   Opener  `json:"opener,omitempty"`
	// Marker is the text that stands in each gap; empty for none.
	Marker string `json:"marker,omitempty"`
	// History bounds the messages before an open cycle, or, when the newest cycle is over, all of them; an
	// open cycle is then shown whole, its tool outputs too. 0: there is no such bound.
	History int `json:"history,omitempty"`
	// SkipSystem leaves system entries out.
	SkipSystem bool `json:"skip_system,omitempty"`
	// ToolOutputChars is up to how many characters a tool result or a call's arguments are shown whole, 0
	// for any number; PreviewChars is how much of a longer one is shown.
	ToolOutputChars int `json:"tool_output_chars,omitempty"`
	PreviewChars    int `json:"preview_chars,omitempty"`
	// OmitToolResults shows every tool result as one line.
	OmitToolResults bool `json:"omit_tool_results,omitempty"`
	// ShowCollapsed shows system entries that user interfaces show collapsed: events of theirs. Entries of other roles
	// are shown, collapsed or not: they hold what was said, and what tools returned.
	ShowCollapsed bool `json:"show_collapsed,omitempty"`
	// Reserve is how many tokens of the model's window are held back for the prompt, the tools and the answer; for the
	// answer at most a quarter of the window.
	Reserve int `json:"reserve,omitempty"`
	// FollowWindow lets what the model's window leaves take the place of Limits.Tokens, where the window is known.
	FollowWindow bool `json:"follow_window,omitempty"`
	// Strategy says what stands in the place of what the window has moved past. Default Truncate: the marker.
	Strategy Strategy `json:"strategy,omitempty"`
	// Role makes this the view of a role of a crew. Default nil: of anybody else.
	Role *RoleView `json:"role,omitempty"`
	// Handoff makes this the view of a hand-off. Default nil: no hand-off.
	Handoff *HandoffView `json:"handoff,omitempty"`
}

// Since is the seq of the last entry that is hidden from who is shown the view, because a crew was reset there; 0 for none.
func (v *View) Since() int64 {
	if v.Role == nil {
		return 0
	}
	return v.Role.Since
}

// RoleView says what a role of a crew is shown. Some of it changes from turn to turn, and each request's envelope holds
// it with the rest.
type RoleView struct {
	Name string `json:"name"` // of the role; in the log, Author.RoleName and NodeID
	// Crew is the id of its crew: in another crew of the conversation a role of that name is another. Default "": any.
	Crew string   `json:"crew,omitempty"`
	Kind RoleKind `json:"kind"`
	// Messages says that the role is shown a list of messages, its own answers as the assistant's, and not one text.
	Messages bool `json:"messages,omitempty"`
	// Newest is how many messages a window shows at most (0: those that are new), and how many stand whole behind a
	// summary at least.
	Newest int `json:"newest,omitempty"`
	// Since and Cursor are the crew's and the role's: see continuo.CrewState. Notes is the seq of its newest notes.
	Since  int64 `json:"since,omitempty"`
	Cursor int64 `json:"cursor,omitempty"`
	Notes  int64 `json:"notes,omitempty"`
	// Remembers says that the role's agent keeps what it was shown and what it said: its own words are not shown to it
	// again. Whole says that it has lost that, or never had it: it is shown the whole history, once.
	Remembers bool `json:"remembers,omitempty"`
	Whole     bool `json:"whole,omitempty"`
	// Reminder is the system prompt of the role where this turn repeats it, at the end of the text; "" where not.
	Reminder string `json:"reminder,omitempty"`
}

// RoleKind is how much of the talk a role is shown.
type RoleKind string

// The kinds of views of roles.
const (
	RoleDelta   RoleKind = "delta"   // what is new since its cursor
	RoleFull    RoleKind = "full"    // everything
	RoleWindow  RoleKind = "window"  // the newest messages
	RoleSummary RoleKind = "summary" // a summary of the old, and the newest messages whole
	RoleMemory  RoleKind = "memory"  // its own notes, and what was said since
)

// Limits bound what a view shows. 0 means no limit. All of them hold at once. The newest user message and the open
// group are shown whatever the limits: where they are over a limit, it bounds what is shown around them.
type Limits struct {
	Messages int `json:"messages,omitempty"`
	Chars    int `json:"chars,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
}

// Opener says which entry at the beginning of the log a view pins, as long as it fits together with the newest message
// and the marker of the gap behind it.
type Opener string

// The openers.
const (
	OpenerNone   Opener = ""
	OpenerSystem Opener = "system" // the first entry, if it is a system entry
	OpenerFirst  Opener = "first"  // the first entry, whatever it is
)

// Marker is the text that stands for entries that are left out.
const Marker = "[Earlier messages truncated]"

// The presets' names. Chat, agent and run are the codex preset under the name of the mode.
const (
	Codex      = "codex"
	Continuity = "continuity"
	Replay     = "replay"
	Handoff    = "handoff"
)

// Names lists the names that Settings.View knows.
func Names() []string { return append(TurnNames(), Handoff) }

// TurnNames lists the presets that the requests of turns can be built by.
func TurnNames() []string {
	return []string{string(continuo.ModeChat), string(continuo.ModeAgent), string(continuo.ModeRun), Codex, Continuity, Replay}
}

// Settings are the figures of the presets that a person may set. See DefaultSettings.
type Settings struct {
	MaxMessages, MaxChars, MaxTokens int
	IncludeToolResults               bool
	IncludeCollapsed                 bool
	LowWater                         float64
	ToolOutputChars, PreviewChars    int
	ChatMaxMessages, ChatMaxTokens   int
	ChatReserve, ReplayHistory       int
	// ChatFollowsWindow says that nobody chose ChatMaxTokens: where the model's window is known, it decides.
	ChatFollowsWindow bool
	// Strategy is of every view but the continuity view, whose own is ChatStrategy, and the replay view, which has none.
	Strategy, ChatStrategy Strategy
	// HandoffMaxMessages is of the handoff view, and Handoff what it tells of entries: task.Limits.Preset sets both.
	HandoffMaxMessages int
	Handoff            *HandoffView
}

// DefaultSettings returns the figures of the design documents.
func DefaultSettings() Settings {
	return Settings{
		MaxMessages: 80, MaxChars: 120_000, IncludeToolResults: true, LowWater: 0.6,
		ToolOutputChars: 8000, PreviewChars: 1200,
		ChatMaxMessages: 50, ChatMaxTokens: 6000, ChatFollowsWindow: true, ChatReserve: 4500,
		ReplayHistory: 15,
	}
}

// View returns a preset. An unknown name is an error that lists the known ones.
func (s Settings) View(name string) (View, error) {
	view := View{
		Name: name, LowWater: s.LowWater, Marker: Marker,
		ToolOutputChars: s.ToolOutputChars, PreviewChars: s.PreviewChars,
		OmitToolResults: !s.IncludeToolResults, ShowCollapsed: s.IncludeCollapsed,
	}
	switch name {
	case Codex, string(continuo.ModeChat), string(continuo.ModeAgent), string(continuo.ModeRun):
		view.Limits = Limits{Messages: s.MaxMessages, Chars: s.MaxChars, Tokens: s.MaxTokens}
		view.Opener = OpenerSystem
		view.Reserve, view.Strategy = s.ChatReserve, s.Strategy
	case Continuity:
		view.Limits = Limits{Messages: s.ChatMaxMessages, Tokens: s.ChatMaxTokens}
		view.Opener = OpenerFirst
		view.Reserve, view.Strategy, view.FollowWindow = s.ChatReserve, s.ChatStrategy, s.ChatFollowsWindow
	case Replay:
		view.History, view.LowWater = s.ReplayHistory, 1
		view.Marker, view.SkipSystem = "", true
		view.ToolOutputChars, view.PreviewChars = 0, s.PreviewChars
	case Handoff:
		if s.Handoff == nil {
			return View{}, fmt.Errorf("view %s: %w: these settings do not say what a hand-off tells", name, continuo.ErrInvalid)
		}
		return View{Name: name, Limits: Limits{Messages: s.HandoffMaxMessages}, LowWater: 1, SkipSystem: true, Handoff: s.Handoff}, nil
	default:
		return View{}, fmt.Errorf("unknown view %q: %w: known are %s", name, continuo.ErrInvalid, strings.Join(Names(), ", "))
	}
	return view, nil
}

// Hash identifies the view's definition, without its name and without how a role stands.
func (v View) Hash() string {
	v.Name = ""
	if v.Role != nil {
		v.Role = v.Role.lasting()
	}
	sum := sha256.Sum256(rawjson.MustMarshal(v))
	return hex.EncodeToString(sum[:8])
}

// check refuses a view that cannot show anything.
func (v View) check() error {
	if v.Limits.Messages < 0 || v.Limits.Chars < 0 || v.Limits.Tokens < 0 || v.History < 0 {
		return fmt.Errorf("view %s: %w: limits must not be negative", v.Name, continuo.ErrInvalid)
	}
	if math.IsNaN(v.LowWater) || v.LowWater <= 0 || v.LowWater > 1 {
		return fmt.Errorf("view %s: %w: the low-water mark must be above 0 and at most 1, not %v", v.Name, continuo.ErrInvalid, v.LowWater)
	}
	if v.Strategy != Truncate && v.Strategy != Summarize {
		return fmt.Errorf("view %s: %w: the strategy %q is not known; use summarize, or none", v.Name, continuo.ErrInvalid, v.Strategy)
	}
	if err := v.Handoff.check(v.Name); err != nil {
		return err
	}
	return v.Role.check(v.Name)
}
