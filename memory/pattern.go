package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// Pattern is what several messages of a user have in common: a fact that is derived.
type Pattern struct {
	Text      string
	Attribute string // names the pattern: of two with the same one, the newer supersedes the older
	Sources   []continuo.FactSource
}

// The bounds of patterns.
const (
	maxTopics        = 5
	minTopicMessages = 4   // with a topic
	topicShare       = 5   // a topic is in at most one of so many messages, else it is a word of the language
	minTimed         = 10  // messages before times are a pattern
	timedShare       = 0.6 // of the messages within the hours of a pattern
	dayPart          = 6   // hours
	patternSources   = 12  // the newest that are kept of each pattern
	maxPatternQuote  = 80  // bytes
	maxCounted       = 20_000
)

// Counts counts topics, tools, times and repeated corrections in the messages of one user. The zero value is ready. It keeps
// where words were said, not the messages.
type Counts struct {
	messages int
	topics   map[string]*tally // by the root of a word
	tools    map[string]*tally
	times    [24 / dayPart]tally
	repeated map[string]*tally // by the content words of an instruction or a correction

	said *continuo.FactSource // the newest message of the user: the source of calls after it
}

// tally is where something was said.
type tally struct {
	form    string // as it was said last
	count   int
	sources []continuo.FactSource
}

func (t *tally) add(form string, source continuo.FactSource) {
	if n := len(t.sources); n > 0 && t.sources[n-1].ConversationID == source.ConversationID && t.sources[n-1].Seq == source.Seq {
		return
	}
	t.form = form
	t.count++
	t.sources = append(t.sources, source)
	if len(t.sources) > 2*patternSources && t.conversations(t.sources[patternSources:]) >= continuo.MinDerivedConversations {
		t.sources = slices.Clone(t.sources[patternSources:])
	}
}

func (*tally) conversations(sources []continuo.FactSource) int {
	ids := map[string]bool{}
	for _, source := range sources {
		ids[source.ConversationID] = true
	}
	return len(ids)
}

// isPattern reports whether enough messages of enough conversations say it.
func (t *tally) isPattern() bool {
	return t.count >= continuo.MinDerivedSources && t.conversations(t.sources) >= continuo.MinDerivedConversations
}

// pattern has the newest sources, of several conversations.
func (t *tally) pattern(text, attribute string) Pattern {
	sources := t.sources
	if from := len(sources) - patternSources; from > 0 && t.conversations(sources[from:]) >= continuo.MinDerivedConversations {
		sources = sources[from:]
	}
	return Pattern{Text: text, Attribute: attribute, Sources: sources[:min(len(sources), continuo.MaxFactSources)]}
}

func put(tallies *map[string]*tally, name, form string, source continuo.FactSource) {
	if *tallies == nil {
		*tallies = map[string]*tally{}
	}
	t := (*tallies)[name]
	if t == nil {
		if len(*tallies) >= maxCounted {
			return
		}
		t = &tally{}
		(*tallies)[name] = t
	}
	t.add(form, source)
}

// correction begins a message that corrects an answer.
var correction = lazy.Regexp(`(?i)^(?:no|nope|wrong|not quite|actually|that's (?:not|wrong)|that is (?:not|wrong)|i (?:said|meant|told you|asked)|again|still wrong)\b`)

// Add counts an entry. Entries of one conversation come in their order.
func (c *Counts) Add(e *continuo.Entry) {
	if e.Role == continuo.Assistant && c.said != nil && c.said.ConversationID == e.ConversationID {
		for _, call := range e.ToolCalls {
			put(&c.tools, call.Name, call.Name, *c.said)
		}
	}
	text := e.Content.String()
	if e.Role != continuo.User || e.Hidden || e.Redacted != nil || e.NoMemory || e.RunEvent != nil {
		return
	}
	whole, ok := beginning(e)
	if !ok {
		return
	}
	c.said, c.messages = &whole, c.messages+1
	c.times[e.CreatedAt.UTC().Hour()/dayPart].add("", whole)
	found := sentences(text)
	for _, sentence := range found {
		for _, word := range wordsOf(sentence) {
			at := strings.Index(strings.ToLower(sentence), word)
			if len(word) < 4 || at < 0 || at+len(word) > len(sentence) || isCommon(word) {
				continue
			}
			source := continuo.FactSource{ConversationID: e.ConversationID, Seq: e.Seq, Quote: sentence[at : at+len(word)]}
			if continuo.Quotes(e, source.Quote) {
				put(&c.topics, root(word), word, source)
			}
		}
	}
	for _, candidate := range Extract(e) {
		if candidate.Kind == continuo.FactInstruction {
			c.repeat(e, candidate.Quote)
		}
	}
	if len(found) > 0 && correction().MatchString(found[0]) && continuo.Quotes(e, found[0]) {
		c.repeat(e, found[0])
	}
}

// repeat counts an instruction or a correction by its content words.
func (c *Counts) repeat(e *continuo.Entry, quote string) {
	words := contentWords(quote)
	if len(words) < 2 {
		return
	}
	slices.Sort(words)
	put(&c.repeated, strings.Join(words, " "), quote, continuo.FactSource{ConversationID: e.ConversationID, Seq: e.Seq, Quote: quote})
}

// isCommon reports whether a word is no topic.
func isCommon(word string) bool {
	return functionWords[word] || commonWords[word] || strings.ContainsAny(word, "0123456789%$'")
}

// commonWords are frequent in what people write to assistants, whatever it is about.
var commonWords = setOf(`able anything around back best better call change check come could create different does done each easy else
even every example feel file find first found full give going good great hard hello help here high keep kind know last least less
line little long look made make many maybe mean might most much must name need never next nice okay only open other part people
place please possible probably problem question quite read really right same seem show since some something start still stuff such
sure take tell thank thanks thing things think those today together tomorrow took tried true type used user using very wait want week
well were what work working works would write wrong year years yesterday`)

// beginning is the beginning of a message as a source.
func beginning(e *continuo.Entry) (continuo.FactSource, bool) {
	for _, sentence := range sentences(e.Content.String()) {
		quote := sentence
		for len(quote) > maxPatternQuote {
			at := strings.LastIndexByte(quote[:maxPatternQuote], ' ')
			if at <= 0 {
				at = maxPatternQuote
				for !utf8.RuneStart(quote[at]) {
					at--
				}
			}
			quote = quote[:at]
		}
		if continuo.Quotes(e, quote) {
			return continuo.FactSource{ConversationID: e.ConversationID, Seq: e.Seq, Quote: quote}, true
		}
	}
	return continuo.FactSource{}, false
}

// Patterns lists what was counted often enough: topics, tools, times, what the user has repeated.
func (c *Counts) Patterns() (patterns []Pattern) {
	topics := slices.DeleteFunc(slices.Sorted(maps.Keys(c.topics)), func(name string) bool {
		t := c.topics[name]
		return !t.isPattern() || t.count < minTopicMessages || topicShare*t.count > c.messages
	})
	slices.SortStableFunc(topics, func(a, b string) int { return cmp.Compare(c.topics[b].count, c.topics[a].count) })
	for _, name := range topics[:min(len(topics), maxTopics)] {
		patterns = append(patterns, c.topics[name].pattern(fmt.Sprintf("The user often writes about %q.", c.topics[name].form), "often topic "+name))
	}
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		if t := c.tools[name]; t.isPattern() {
			patterns = append(patterns, t.pattern(fmt.Sprintf("Answers to the user often use the tool %s.", name), "often tool "+name))
		}
	}
	for part := range c.times {
		if t := &c.times[part]; c.messages >= minTimed && float64(t.count) >= timedShare*float64(c.messages) && t.isPattern() {
			patterns = append(patterns, t.pattern(fmt.Sprintf("The user writes mostly between %02d:00 and %02d:00 UTC.", part*dayPart, (part+1)*dayPart), "often time"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.repeated)) {
		if t := c.repeated[name]; t.isPattern() {
			patterns = append(patterns, t.pattern(fmt.Sprintf("The user has said repeatedly: %s", t.form), "often said "+name))
		}
	}
	return patterns
}
