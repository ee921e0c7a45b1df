package window

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// View is a named definition of how a log is shown to a reader. Two requests share an epoch only when their
// views are equal in everything but the name: so a change of mode does not move the window.
type View struct {
	Name   string `json:"name"`
	Limits Limits `json:"limits"`
	// LowWater is the share of the limits that a move of the window leaves in use: 0 < LowWater <= 1.
	// At 1 the window slides with every message.
	LowWater float64 `json:"low_water"`
	// Priced says that each move chooses the mark near LowWater that is expected to cost the least, by the prices of the
	// model's cache and by how the conversation grows. The mean window is that of LowWater, or larger.
	Priced bool   `json:"priced,omitempty"`
	Opener Opener `json:"opener,omitempty"`
	// Marker is the text that is shown in each gap; empty for none.
	Marker string `json:"marker,omitempty"`
	// History bounds the messages before an open cycle, or all messages when the newest cycle is over; an
	// open cycle is then shown whole, with its tool outputs. 0: no bound.
	History int `json:"history,omitempty"`
	// SkipSystem leaves system entries out.
	SkipSystem bool `json:"skip_system,omitempty"`
	// ToolOutputChars is the length in characters up to which a tool result or a call's arguments are shown
	// whole, 0 for any length; PreviewChars is how much of a longer one is shown.
	ToolOutputChars int `json:"tool_output_chars,omitempty"`
	PreviewChars    int `json:"preview_chars,omitempty"`
	// OmitToolResults shows every tool result as one line.
	OmitToolResults bool `json:"omit_tool_results,omitempty"`
	// ShowCollapsed shows system entries that user interfaces collapse, which are events. Entries of other
	// roles are always shown: they hold messages and the results of tools.
	ShowCollapsed bool `json:"show_collapsed,omitempty"`
	// Reserve is how many tokens of the model's window are held back for the prompt, the tools and the answer; for the
	// answer at most a quarter of the window.
	Reserve int `json:"reserve,omitempty"`
	// FollowWindow replaces Limits.Tokens by what the model's window leaves, if the window is known.
	FollowWindow bool `json:"follow_window,omitempty"`
	// Strategy says what is shown instead of the entries before the window. Default Truncate: the marker.
	Strategy Strategy `json:"strategy,omitempty"`
	// Outputs says in which form of the tool outputs a move counts them when it fills the window. Default ShortOutputs.
	Outputs Outputs `json:"outputs,omitempty"`
	// ByUse says that a move gives up first what is needed least: results whose lines later results have again, failed calls of
	// a tool that succeeded later, images that an answer followed. Then it shortens outputs by their age, as without it.
	ByUse bool `json:"by_use,omitempty"`
	// Without are the seqs of entries that are left out, because the client that keeps its history itself does not have them.
	Without []int64 `json:"without,omitempty"`
	// RecallShare is the share of the limits that recalled entries take at most, all that are still shown together; 0: recalls
	// are neither made nor shown.
	RecallShare float64 `json:"recall_share,omitempty"`
	// Profile says whether requests show what is known of the user.
	Profile Profile `json:"profile,omitempty"`
}

// Outputs chooses between more messages and whole tool outputs.
type Outputs string

// The choices. ShortOutputs: a move goes back as far as the messages fit with their outputs in one line each, and then
// shows as many of the newest outputs whole as fit. WholeOutputs: it goes back as far as they fit with whole outputs.
const (
	ShortOutputs Outputs = ""
	WholeOutputs Outputs = "whole"
)

// Opener says which entry at the beginning of the log a view pins, if it fits together with the newest
// message and the marker of the gap after it.
type Opener string

// The openers.
const (
	OpenerNone   Opener = ""
	OpenerSystem Opener = "system" // the first entry, if it is a system entry
	OpenerFirst  Opener = "first"  // the first entry, whatever it is
)

// Marker is the text shown in place of entries that are left out.
const Marker = "[Earlier messages truncated]"

// The presets' names. Chat, agent and run are the preset codex under the name of the mode.
const (
	Codex      = "codex"
	Continuity = "continuity"
	Replay     = "replay"
)

// Names lists the presets with which the requests of turns are built.
func Names() []string {
	return []string{string(continuo.ModeChat), string(continuo.ModeAgent), string(continuo.ModeRun), Codex, Continuity, Replay}
}

// Settings are the numbers of the presets that a user may set. See DefaultSettings.
type Settings struct {
	MaxMessages, MaxChars, MaxTokens int
	IncludeToolResults               bool
	IncludeCollapsed                 bool
	LowWater                         float64
	// Priced lets moves choose marks near LowWater by what they cost.
	Priced bool
	// ByUse lets moves give up what is needed least first.
	ByUse                          bool
	ToolOutputChars, PreviewChars  int
	ChatMaxMessages, ChatMaxTokens int
	ChatReserve, ReplayHistory     int
	// ChatFollowsWindow says that ChatMaxTokens was not set: the model's window decides if it is known.
	ChatFollowsWindow bool
	// Strategy is the strategy of all views except the continuity view, which has ChatStrategy, and the
	// replay view, which has none.
	Strategy, ChatStrategy Strategy
	// Outputs is that of all views except the replay view, whose outputs are always whole.
	Outputs Outputs
	// RecallShare is that of all views except the replay view, which shows no recalls.
	RecallShare float64
	// Profile says that all views except the replay view show what is known of the user.
	Profile bool
}

// DefaultRecallShare is the default of Settings.RecallShare.
const DefaultRecallShare = 0.25

// DefaultSettings returns the numbers of the design documents.
func DefaultSettings() Settings {
	return Settings{
		MaxMessages: 80, MaxChars: 120_000, IncludeToolResults: true, LowWater: 0.4, Priced: true, ByUse: true,
		ToolOutputChars: 8000, PreviewChars: 1200,
		ChatMaxMessages: 50, ChatMaxTokens: 6000, ChatFollowsWindow: true, ChatReserve: 4500,
		ReplayHistory: 15, RecallShare: DefaultRecallShare, Profile: true,
	}
}

// View returns a preset. An unknown name is an error that lists the known ones.
func (s Settings) View(name string) (View, error) {
	view := View{
		Name: name, LowWater: s.LowWater, Priced: s.Priced, ByUse: s.ByUse, Marker: Marker,
		ToolOutputChars: s.ToolOutputChars, PreviewChars: s.PreviewChars, RecallShare: s.RecallShare,
		OmitToolResults: !s.IncludeToolResults, ShowCollapsed: s.IncludeCollapsed,
	}
	if s.Profile {
		view.Profile = ProfileShown
	}
	switch name {
	case Codex, string(continuo.ModeChat), string(continuo.ModeAgent), string(continuo.ModeRun):
		view.Limits = Limits{Messages: s.MaxMessages, Chars: s.MaxChars, Tokens: s.MaxTokens}
		view.Opener = OpenerSystem
		view.Reserve, view.Strategy, view.Outputs = s.ChatReserve, s.Strategy, s.Outputs
	case Continuity:
		view.Limits = Limits{Messages: s.ChatMaxMessages, Tokens: s.ChatMaxTokens}
		view.Opener = OpenerFirst
		view.Reserve, view.Strategy, view.FollowWindow = s.ChatReserve, s.ChatStrategy, s.ChatFollowsWindow
		view.Outputs = s.Outputs
	case Replay:
		view.History, view.LowWater, view.Priced, view.ByUse = s.ReplayHistory, 1, false, false
		view.Marker, view.SkipSystem, view.RecallShare = "", true, 0
		view.Profile = ProfileNone
		view.ToolOutputChars, view.PreviewChars = 0, s.PreviewChars
	default:
		return View{}, fmt.Errorf("unknown view %q: %w; allowed: %s", name, continuo.ErrInvalid, strings.Join(Names(), ", "))
	}
	return view, nil
}

// Hash identifies the view's definition, without its name, and whether one request hides the profile.
func (v View) Hash() string {
	v.Name = ""
	if v.Profile == ProfileHidden {
		v.Profile = ProfileShown
	}
	return HashOf(v)
}

// HashOf identifies a definition of a view by its JSON.
func HashOf(definition any) string {
	sum := sha256.Sum256(rawjson.MustMarshal(definition))
	return hex.EncodeToString(sum[:8])
}

// MaxMessages is how many messages the view shows at most; 0 for any number.
func (v View) MaxMessages() int { return v.Limits.Messages }

// title names the view in errors.
func (v View) title() string { return cmp.Or(v.Name, "without a name") }

// Check refuses a view that cannot show anything.
func (v View) Check() error {
	if v.Limits.Messages < 0 || v.Limits.Chars < 0 || v.Limits.Tokens < 0 || v.History < 0 {
		return fmt.Errorf("view %s: %w: limits must not be negative", v.title(), continuo.ErrInvalid)
	}
	if math.IsNaN(v.LowWater) || v.LowWater <= 0 || v.LowWater > 1 {
		return fmt.Errorf("view %s: %w: the low-water mark must be above 0 and at most 1, not %v", v.title(), continuo.ErrInvalid, v.LowWater)
	}
	if math.IsNaN(v.RecallShare) || v.RecallShare < 0 || v.RecallShare > 1 {
		return fmt.Errorf("view %s: %w: the share of recalled entries must be from 0 to 1, not %v", v.title(), continuo.ErrInvalid, v.RecallShare)
	}
	if v.Strategy != Truncate && v.Strategy != Summarize {
		return fmt.Errorf("view %s: %w: the strategy %q is not known; use summarize, or none", v.title(), continuo.ErrInvalid, v.Strategy)
	}
	if v.Profile != ProfileNone && v.Profile != ProfileShown && v.Profile != ProfileHidden {
		return fmt.Errorf("view %s: %w: the profile %q is not known; use shown, hidden, or none", v.title(), continuo.ErrInvalid, v.Profile)
	}
	if v.Outputs != ShortOutputs && v.Outputs != WholeOutputs {
		return fmt.Errorf("view %s: %w: the choice of outputs %q is not known; use whole, or none", v.title(), continuo.ErrInvalid, v.Outputs)
	}
	return nil
}
