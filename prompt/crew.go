package prompt

import (
	"fmt"
	"strings"
)

// crewRules is the file with the rules for the roles of a crew. {{display_name}} in it is the role's.
const crewRules = "crew.md"

// Member is a role of a crew as the others know it.
type Member struct {
	DisplayName string
	IsModerator bool
}

// Crew returns the system messages for a role of a crew, in order: its own system prompt, the rules for all roles, and
// the banner that says who is in the crew.
func (p Prompts) Crew(systemPrompt string, self Member, others []Member) ([]string, error) {
	rules, err := p.text(crewRules)
	if err != nil {
		return nil, err
	}
	rules = strings.ReplaceAll(rules, "{{display_name}}", self.DisplayName)
	var messages []string
	for _, text := range []string{systemPrompt, rules, crewBanner(self, others)} {
		if text = strings.TrimSpace(text); text != "" {
			messages = append(messages, text)
		}
	}
	return messages, nil
}

// crewBanner tells a role who it is and who else there is; it stands even where a project's rules replace ours.
func crewBanner(self Member, others []Member) string {
	var names, moderators []string
	for _, other := range others {
		names = append(names, other.DisplayName)
	}
	for _, member := range append([]Member{self}, others...) {
		if member.IsModerator {
			moderators = append(moderators, member.DisplayName)
		}
	}
	return fmt.Sprintf("CREW\n- you: %s\n- others: %s\n- moderators: %s", self.DisplayName, listOf(names), listOf(moderators))
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "; ")
}
