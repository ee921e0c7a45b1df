package config

import (
	"maps"
	"slices"
	"strings"
)

// summarizer is the name of a model that makes summaries, or empty for the built-in one.
func summarizer(place *string) value {
	v := name(place, "a name under models, or nothing")
	choose := v.set
	v.set = func(text string) error {
		if text == "" {
			*place = ""
			return nil
		}
		return choose(text)
	}
	return v
}

// checkSummarizer refuses a summarizer that is no model.
func (l *loader) checkSummarizer() {
	c := l.config
	if _, ok := c.Models[c.Context.Summarizer]; ok || c.Context.Summarizer == "" || l.broken {
		return
	}
	const key = "context.summarizer"
	names := slices.Sorted(maps.Keys(c.Models))
	if len(names) == 0 {
		l.problems.add(l.row(key).origin, "%s: given %s, and there are no models; leave it empty for the built-in summarizer", key, quoted(c.Context.Summarizer))
		return
	}
	l.problems.add(l.row(key).origin, "%s: given %s, which is no model; the models are %s", key, quoted(c.Context.Summarizer), strings.Join(names, ", "))
}
