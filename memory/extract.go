package memory

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// Candidate is a fact that was found in an entry. Its text is a substring of the entry's, unless a model wrote it.
type Candidate struct {
	Text       string
	Quote      string
	Kind       continuo.FactKind
	Subject    string
	Attribute  string
	Confidence float64
	ValidTo    time.Time // zero where it names no end
}

// maxPerEntry bounds the facts of one message.
const maxPerEntry = 12

// Extract finds what a person says of itself in an entry, by rules: standing instructions, preferences, decisions, who
// the person is, whom it knows, what it did. Only words of users count: what a model, a tool or a document says is not
// a person's statement. Two calls with the same entry give the same facts.
func Extract(e *continuo.Entry) (found []Candidate) {
	if e.Role != continuo.User || e.Hidden || e.Redacted != nil || e.NoMemory || e.RunEvent != nil {
		return nil
	}
	subject := UserSubject
	if e.Name != "" {
		subject = e.Name
	}
	seen := map[string]bool{}
	for _, sentence := range sentences(e.Content.String()) {
		for _, candidate := range statements(sentence) {
			if seen[candidate.Text] || !continuo.Quotes(e, candidate.Quote) {
				continue
			}
			seen[candidate.Text] = true
			candidate.Subject = subject
			candidate.ValidTo = Ending(candidate.Kind, candidate.Text, e.CreatedAt)
			found = append(found, candidate)
		}
	}
	return found[:min(len(found), maxPerEntry)]
}

// rule finds one kind of statement. Where its pattern begins inside of a sentence, the statement begins there.
type rule struct {
	pattern    func() *regexp.Regexp
	kind       continuo.FactKind
	confidence float64
	// attribute names what the statement says; the submatch "of" of the pattern, if there is one, follows it.
	attribute string
	// words are, in lower case, what begins at a word of each sentence that the pattern matches: one of them. They are looked
	// for first, because a pattern takes a hundred times as long.
	words []string
}

// isPossible reports whether a sentence, in lower case, has one of the rule's words.
func (r *rule) isPossible(lower string) bool {
	for _, word := range r.words {
		for from := 0; ; {
			at := strings.Index(lower[from:], word)
			if at < 0 {
				break
			}
			if at += from; at == 0 || lower[at-1] < 'a' || lower[at-1] > 'z' {
				return true
			}
			from = at + 1
		}
	}
	return false
}

const (
	begin   = `(?i)(?:^|[,;:–—-] *|\b(?:and|but|so|because|since|that|though|although|while|as) +)`
	adverbs = `(?:really |also |always |usually |generally |normally |still |now |just |recently |currently |actually |already |finally |even |absolutely |personally |definitely |strongly |much |often |typically |mostly |both |only |kinda |kind of )*`
	person  = `(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kids?|children|baby|mom|mum|mother|dad|father|parents|brother|sister|siblings?|twin|uncle|aunt|cousins?|nephew|niece|grandm(?:a|other)|grandp(?:a|arents)|grandfather|boss|manager|mentor|coach|therapist|teacher|colleague|co-?worker|teammate|team|roommate|neighbou?r|friends?|best friend|dog|cat|pets?|puppy|kitten)`
)

func pattern(expression string) func() *regexp.Regexp { return lazy.Regexp(begin + expression) }

// rules are tried in order; the first that matches a sentence counts.
var rules = []rule{
	{lazy.Regexp(`(?i)^(?:please,? |and |also,? |so,? |ok(?:ay)?,? |oh,? )*(?:always|never|do not ever|don't ever|(?:from now on|in (?:the )?future|going forward|by default),? (?:please,? |always |never |do not |don't |only )*(?:add|answer|ask|avoid|call|check|cite|end|explain|format|give|include|keep|list|make|mention|provide|put|reply|respond|return|say|show|start|stop|suggest|tell|use|write))\b`), continuo.FactInstruction, 0.9, "", []string{"always", "never", "do not ever", "don't ever", "from now", "in future", "in the future", "going forward", "by default"}},
	{lazy.Regexp(`(?i)^[^?]{0,200}\bwhen(?:ever)? i (?:ask|request|mention|say)\b`), continuo.FactInstruction, 0.8, "", []string{"when"}},
	{lazy.Regexp(`(?i)^(?:please,? )?(?:remember|note|know)(?: that|:)`), continuo.FactOther, 0.5, "", []string{"remember", "note", "know"}},
	{pattern(`(?:my name is|i'm called|i am called|(?:you can |please )?call me|people call me) +\p{L}`), continuo.FactIdentity, 0.95, "name", []string{"my name", "called", "call me"}},
	{pattern(`my favou?rite (?P<of>\p{L}[\p{L}' -]{1,30}?) (?:is|are|has always been|of all)\b`), continuo.FactPreference, 0.9, "favourite", []string{"my favo"}},
	{pattern(`(?:i|we) ` + adverbs + `(?:prefer|favou?r|like|love|enjoy|adore|appreciate|hate|dislike|loathe|can't stand|cannot stand|avoid|don't (?:like|enjoy|want|eat|drink|care for)|do not (?:like|want|eat|drink)|stick (?:to|with))\b`), continuo.FactPreference, 0.85, "", []string{"prefer", "favo", "like", "love", "enjoy", "adore", "appreciate", "hate", "dislike", "loathe", "can't", "cannot", "avoid", "don't", "do not", "stick"}},
	{pattern(`(?:i'm|i am) ` + adverbs + `(?:a (?:big |huge |great )?fan of|into|fond of|passionate about|obsessed with|allergic to|vegetarian|vegan)`), continuo.FactPreference, 0.85, "", []string{"fan of", "into", "fond of", "passionate", "obsessed", "allergic", "vegetarian", "vegan"}},
	{pattern(`(?:i'd|i would|we'd) rather\b`), continuo.FactPreference, 0.8, "", []string{"rather"}},
	{pattern(`(?:i've|i have|we've|we have)? ?(?:set a preference for|my preference (?:is|for))`), continuo.FactPreference, 0.85, "", []string{"set a pref", "my pref"}},
	{pattern(`(?:i|we)(?:'ve| have)? ` + adverbs + `(?:decided|chose|chosen|opted|picked|settled on|agreed|committed to|switched (?:to|from)|migrated|adopted|ruled out|rejected|resolved to)\b`), continuo.FactDecision, 0.8, "", []string{"decided", "chose", "opted", "picked", "settled", "agreed", "committed", "switched", "migrated", "adopted", "ruled", "rejected", "resolved"}},
	{pattern(`(?:let's|we'll|i'll|we're going to|i'm going to|we are going to) ` + adverbs + `(?:go with|use|stick with|switch to|move to|adopt|drop)\b`), continuo.FactDecision, 0.7, "", []string{"go with", "use", "stick", "switch", "move", "adopt", "drop"}},
	{pattern(`(?:i|we) ` + adverbs + `(?:live|reside) in\b`), continuo.FactIdentity, 0.9, "home", []string{"live", "reside"}},
	{pattern(`(?:i|we) ` + adverbs + `(?:live|reside) (?:at|near|on|with)\b`), continuo.FactIdentity, 0.9, "", []string{"live", "reside"}},
	{pattern(`(?:i|we) ` + adverbs + `(?:used to (?:live|work|be|have|own|play)|(?:live|reside|work)d (?:in|at|near|on|for|as)|worked (?:at|for|as))\b`), continuo.FactEvent, 0.8, "", []string{"used to", "lived", "resided", "worked"}},
	{pattern(`i(?:'ve| have)? ` + adverbs + `moved (?:back )?to (?-i:\p{Lu})`), continuo.FactIdentity, 0.85, "home", []string{"moved"}},
	{pattern(`(?:i|we)(?:'ve| have)? ` + adverbs + `moved (?:to|into|back to)\b`), continuo.FactEvent, 0.8, "", []string{"moved"}},
	{pattern(`(?:i|we) ` + adverbs + `work (?:at|for) (?-i:(?:the )?\p{Lu})`), continuo.FactIdentity, 0.9, "employer", []string{"work"}},
	{pattern(`(?:i|we) ` + adverbs + `work as\b`), continuo.FactIdentity, 0.9, "occupation", []string{"work"}},
	{pattern(`(?:i|we) ` + adverbs + `work (?:at|for)\b`), continuo.FactIdentity, 0.85, "", []string{"work"}},
	{pattern(`(?:i'm|i am) ` + adverbs + `(?:\d{1,3} years old|\d{1,3}[, ])`), continuo.FactIdentity, 0.9, "age", []string{"i'm", "i am"}},
	{pattern(`(?:i'm|i am) ` + adverbs + `an? (?:\p{L}[\p{L}-]* ){0,3}(?:developer|engineer|designer|manager|teacher|student|writer|author|artist|nurse|doctor|lawyer|analyst|scientist|architect|consultant|producer|musician|chef|photographer|researcher|freelancer|owner|founder|director|editor|accountant|assistant|coordinator|actor|dancer|player|guard|mother|father|parent|beginner|\p{L}+(?:ist|ian|ologist))\b`), continuo.FactIdentity, 0.85, "", []string{"i'm", "i am"}},
	{pattern(`i was born\b`), continuo.FactIdentity, 0.9, "birth", []string{"i was born"}},
	{pattern(`(?:i'm|i am) (?:originally )?from +\p{Lu}`), continuo.FactIdentity, 0.85, "origin", []string{"from"}},
	{pattern(`my (?P<of>job|occupation|profession|email|e-mail|phone(?: number)?|address|birthday|timezone|time zone|age|nationality|hometown|salary|pronouns) (?:is|are)\b`), continuo.FactIdentity, 0.9, "", []string{"my "}},
	{pattern(`(?:my|our) (?P<of>\p{L}[\p{L}' -]{1,40}?) (?:is|are) (?:now |currently |about |around |still |set (?:to|at|for) |on |due )*(?:\$|€|£)?\d`), continuo.FactOther, 0.8, "", []string{"my ", "our "}},
	{pattern(`my ` + person + `s?(?:'s name|,? +(?:is|are|has|have|lives?|works?|loves?|likes?|called|named|who|and i (?:are|were|have)|(?-i:\p{Lu}\p{L}+)))\b`), continuo.FactRelation, 0.75, "", []string{"my "}},
	{pattern(`my ` + person + `(?:'s|s)?,? +\p{L}`), continuo.FactEvent, 0.7, "", []string{"my "}},
	{pattern(`(?:i|we)(?:'ve| have)? ` + adverbs + `never\b`), continuo.FactEvent, 0.8, "", []string{"never"}},
	{pattern(`(?:i've|i have|we've|we have|i|we) ` + adverbs + `(?:\p{L}+ed|been|begun|began|bought|brought|built|caught|came|did|done|drew|drove|drunk|drank|eaten|ate|fell|felt|found|flew|forgot|gone|got|gotten|gave|given|went|grew|had|heard|held|hit|hurt|kept|knew|led|left|lost|made|met|paid|put|ran|read|rode|said|saw|seen|sent|set|sold|spent|spoke|stood|swam|taken|took|taught|thought|told|understood|visited|won +(?:an?|the|my|our|first|second|third)|woke|wore|written|wrote)\b`), continuo.FactEvent, 0.7, "", []string{"i ", "we ", "i'", "we'"}},
	{pattern(`(?:i'm|i am|we're|we are|i've been|i have been) ` + adverbs + `(?:\p{L}+ing)\b`), continuo.FactEvent, 0.6, "", []string{"i'm", "i am", "we're", "we are", "i've", "i have"}},
	{pattern(`(?:my|our) (?:\p{L}[\p{L}' -]{1,60}?) (?:is|are|was|were|has|have|had|means|takes|includes?|starts|ends)\b`), continuo.FactOther, 0.6, "", []string{"my ", "our "}},
	{pattern(`(?:i|we) ` + adverbs + `(?:have|own|play|speak|study|teach|run|use|drive|attend|volunteer|practi[cs]e|collect|make|cook|need|plan|hope|want|dream|believe|feel|know|go|take|meet|keep|do|eat|drink|visualize|typically|work)\b`), continuo.FactOther, 0.6, "", []string{"i ", "we "}},
}

// A sentence that does not state anything as true, or that repeats what others say, is no fact.
var (
	hedge    = lazy.Regexp(`(?i)^(?:if|suppose|imagine|assume|say|pretend|unless)\b|\b(?:i|we) (?:might|may|could|would|should) |\bmaybe i\b|\bperhaps i\b|\bas if i\b|\bif i\b|\bi wish\b|\b(?:in|for) (?:this|that|the|an|my) (?:example|sample|scenario)\b`)
	reported = lazy.Regexp(`(?i)\b(?:he|she|they|it|who|\p{L}+) (?:says?|said|claims?|claimed|writes?|wrote|tells|told me|asks?|asked|states?|stated)[:,]? +["“'‘]|["“][^"”]*\b[Ii] [^"”]*["”]`)
	noRule   = lazy.Regexp(`(?i)^(?:always|never) (?:mind|give up|thought|knew|been|had|heard|seen|a|an|the|been|good|great|nice|fun|happy|here|there|love|loved|wanted|felt|know|tried|got|better|say|stop|too)\b`)
	doubt    = lazy.Regexp(`(?i)\b(?:worried|worry|afraid|concerned|nervous|fear|unsure|sure|ensure|whether|how|why|wondering|wonder|check|hope|hoping)\b[^,;.]*$`)
	chatter  = lazy.Regexp(`(?i)^(?:i|we)(?:'m| am|'re| are)? ?(?:so |really |very |just )*(?:still |currently |also )*(?:glad|happy|sorry|sure|excited|trying to|looking (?:for|to)|wondering|not sure|curious|worried|concerned|struggling|having (?:trouble|issues|some|difficulty)|getting|feeling|doing (?:ok|okay|well|good|great|fine|alright)|experiencing|seeing|facing|encountering|wanting|stuck|ready|able|working on|thinking|going to try|hoping|want to make sure|need help|need to|want to|would like|think|guess|see|know|understand|agree|hope|appreciate (?:it|that|your|you)|love (?:it|that|this|your)|like (?:it|that|this|your)|feel you|hear you|'ll|do)\b`)
)

// statement finds the first rule that a clause of a sentence matches. Plain is the sentence with plain apostrophes, of which
// offsets has the places in the sentence.
func statement(sentence, plain string, offsets []int, clauseOf span) (Candidate, bool) {
	said := plain[clauseOf.from:clauseOf.to]
	lower, isChecked := strings.ToLower(said), false
	for i := range rules {
		r := &rules[i]
		if !r.isPossible(lower) {
			continue
		}
		at := r.pattern().FindStringSubmatchIndex(said)
		if at == nil {
			continue
		}
		if !isChecked && hedge().MatchString(said) {
			return Candidate{}, false
		}
		isChecked = true
		from, to := clause(said, r.start(said, at))
		text := said[from:to]
		if doubt().MatchString(said[:from]) {
			continue
		}
		if utf8.RuneCountInString(text) < minStatement || r.isTooShort(text) || isNoStatement(r.kind, text) {
			continue
		}
		quote := sentence[offsets[clauseOf.from+from]:offsets[clauseOf.from+to]]
		found := Candidate{Text: quote, Quote: quote, Kind: r.kind, Attribute: r.attribute, Confidence: r.confidence}
		if of := r.pattern().SubexpIndex("of"); of > 0 && at[2*of] >= 0 {
			found.Attribute = strings.TrimSpace(r.attribute + " " + nameOf(said[at[2*of]:at[2*of+1]]))
		}
		return found, true
	}
	return Candidate{}, false
}

// isTooShort reports whether a text has fewer than three words; of a sure rule, "I'm" counts as two.
func (r *rule) isTooShort(text string) bool {
	const sure = 0.85
	words := len(strings.Fields(text))
	if r.confidence >= sure && strings.HasPrefix(strings.ToLower(text), "i'") {
		words++
	}
	return words < 3
}

// nameOf names what a statement is about, as its words say it, such as "time zone".
func nameOf(words string) string {
	return strings.Join(slices.DeleteFunc(wordsOf(words), func(word string) bool { return functionWords[word] }), " ")
}

// isNoStatement reports whether a text of a kind only has the form of one.
func isNoStatement(kind continuo.FactKind, text string) bool {
	if kind == continuo.FactInstruction {
		return noRule().MatchString(text)
	}
	return chatter().MatchString(text)
}

// plainApostrophes replaces typographic apostrophes, and returns for each offset of the result the one in the text.
func plainApostrophes(text string) (plain string, offsets []int) {
	bytes := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		offsets = append(offsets, at)
		if strings.HasPrefix(text[at:], "’") {
			bytes = append(bytes, '\'')
			at += len("’")
			continue
		}
		bytes = append(bytes, text[at])
		at++
	}
	return string(bytes), append(offsets, len(text))
}

// asksAfterStatement reports whether a question is only the end of a sentence that began with a statement.
func asksAfterStatement(sentence string) bool {
	cut := request().FindStringIndex(sentence)
	return cut != nil && cut[0] > minStatement
}

// start is where a statement begins in its sentence: at the first word of the pattern.
func (r *rule) start(sentence string, at []int) int {
	if r.kind == continuo.FactInstruction || r.kind == continuo.FactRelation || at[0] == 0 && !startsWithJoint(sentence) {
		return 0
	}
	begin := at[0]
	joint := jointWords().FindString(sentence[begin:])
	return begin + len(joint)
}

var jointWords = lazy.Regexp(`(?i)^(?:[,;:–—-] *)?(?:(?:and|but|so|because|since|that|though|although|while|as) +)?`)

func startsWithJoint(sentence string) bool { return jointWords().FindString(sentence) != "" }
