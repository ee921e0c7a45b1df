package window

import (
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// Profile says whether the requests of a view show what is known of the conversation's user, as the last of the system
// messages.
type Profile string

// The values of View.Profile. ProfileHidden: the window keeps its profile, and this request does not show it.
const (
	ProfileNone   Profile = ""
	ProfileShown  Profile = "shown"
	ProfileHidden Profile = "hidden"
)

// Profiles finds the profiles of a conversation's user. It is what a build reads besides the conversation.
type Profiles interface {
	// Find returns the profile that an earlier request showed; nil where it was removed since, or is another user's.
	Find(ref continuo.ProfileRef) (*continuo.Entry, error)
	// Newest names the profile that a window takes when it moves; nil for none.
	Newest() *continuo.ProfileRef
}

// PlanProfile says what a request shows of what is known of the user.
type PlanProfile struct {
	continuo.ProfileRef
	// Verdict is kept, or excluded.
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	// Size is what it counts for, a part of `totals.prompt`; absent where it is not shown.
	Size *continuo.Size `json:"size,omitempty"`
	// Entry is the profile; nil where it is not shown.
	Entry *continuo.Entry `json:"-"`
}

// System returns the system messages of a request with this plan: the given ones, and the profile that it shows.
func (p *Plan) System(others []string) []string {
	if p.Profile == nil || p.Profile.Entry == nil {
		return others
	}
	return append(others[:len(others):len(others)], p.Profile.Entry.Content.String())
}

// profile is the profile of a request that is being planned.
type profile struct {
	plan *PlanProfile  // nil for none
	size continuo.Size // in the prompt; zero where it is not shown
}

// ref is what the window records; nil for none.
func (p profile) ref() *continuo.ProfileRef {
	if p.plan == nil {
		return nil
	}
	ref := p.plan.ProfileRef
	return &ref
}

// keptProfile is the profile of the window as it stands. One that was removed since is replaced as soon as there is
// another one.
func (b *build) keptProfile() (profile, error) {
	if !b.hasProfiles() || b.previous == nil || b.previous.Profile == nil {
		return profile{}, nil
	}
	kept, err := b.found(*b.previous.Profile)
	if err != nil || kept.plan.Reason != ReasonProfileRemoved {
		return kept, err
	}
	if newest := b.in.Profiles.Newest(); newest != nil {
		return b.found(*newest)
	}
	return kept, nil
}

// takenProfile is the profile that a first window has, or one that moves.
func (b *build) takenProfile() (profile, error) {
	if !b.hasProfiles() {
		return profile{}, nil
	}
	if newest := b.in.Profiles.Newest(); newest != nil {
		return b.found(*newest)
	}
	return b.keptProfile()
}

func (b *build) hasProfiles() bool { return b.in.Profiles != nil && b.view.Profile != ProfileNone }

// found is a profile as the view shows it.
func (b *build) found(ref continuo.ProfileRef) (profile, error) {
	made := profile{plan: &PlanProfile{ProfileRef: ref, Verdict: Excluded}}
	entry, err := b.in.Profiles.Find(ref)
	switch {
	case err != nil:
		return profile{}, err
	case entry == nil:
		made.plan.Reason = ReasonProfileRemoved
	case b.view.Profile == ProfileHidden:
		made.plan.Reason = ReasonProfileOff
	case entry.Content.IsBlank():
		made.plan.Reason = ReasonEmpty
	default:
		made.size = continuo.Measure(entry.Content, nil, b.in.Counter)
		made.size.Messages = 1
		made.plan.Verdict, made.plan.Reason, made.plan.Entry, made.plan.Size = Kept, ReasonProfile, entry, &made.size
	}
	return made, nil
}

// requireBeside is require for a request with a profile, which counts as a part of the prompt. A profile beside which the
// model's window has no room for what the request must hold is left out.
func (b *build) requireBeside(p profile) (required, error) {
	b.profile = p
	b.in.Prompt = b.prompt.Add(p.size)
	need, err := b.require()
	var overflow *continuo.OverflowError
	if p.size.Messages == 0 || !errors.As(err, &overflow) {
		return need, err
	}
	left := *p.plan
	left.Verdict, left.Reason, left.Size, left.Entry = Excluded, DropReason(LimitTokens), nil, nil
	b.profile, b.in.Prompt = profile{plan: &left}, b.prompt
	return b.require()
}
