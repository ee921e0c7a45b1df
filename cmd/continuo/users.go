package main

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

// ownerFlag is the owner of the conversation that a command begins or continues.
type ownerFlag struct {
	User string `placeholder:"USER" help:"The conversation's user: a new one, and one without a user, become this user's; another user's is refused. Default: unchanged."`
}

// check refuses an invalid user, and a conversation of another user.
func (o ownerFlag) check(conversation continuo.Conversation) error {
	if err := continuo.CheckUserID(o.User); err != nil {
		return usage("--user: %v", err)
	}
	if o.User != "" && conversation.UserID != "" && conversation.UserID != o.User {
		return fmt.Errorf("conversation %s: %w: --user is %s", nameOf(conversation), continuo.ErrOtherUser, term.OneLine(o.User, 60))
	}
	return nil
}

// narrowing is the filter of lists and searches.
type narrowing struct {
	User  string   `placeholder:"USER" help:"Only conversations of this user."`
	Where []string `sep:"none" placeholder:"NAME=VALUE" help:"Only conversations whose metadata has this value. May be repeated: all values must be there."`
}

// labels parses the metadata filters, and refuses invalid ones.
func (n narrowing) labels() (map[string]string, error) {
	if err := continuo.CheckUserID(n.User); err != nil {
		return nil, usage("--user: %v", err)
	}
	var labels map[string]string
	for _, text := range n.Where {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usage("--where %q: write NAME=VALUE, with the name of a member of the metadata", text)
		}
		if other, twice := labels[name]; twice && other != value {
			return nil, usage("--where: %s is given twice, with the values %q and %q", name, other, value)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	if err := continuo.CheckLabels(labels); err != nil {
		return nil, usage("--where: %v", err)
	}
	return labels, nil
}

// isSet reports whether there is a filter.
func (n narrowing) isSet() bool { return n.User != "" || len(n.Where) > 0 }
