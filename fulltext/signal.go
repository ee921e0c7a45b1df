package fulltext

import "strings"

// Signals are forms of a text that make it relevant to more than its own subject.
type Signals struct {
	Cue      bool // says how something is to be done or what is liked
	Prefers  bool // compares: prefers, rather than
	Standing bool // begins as an instruction that keeps being valid, or says what to do when asked
}

// SignalsTerm is the condition that an entry of a user has one of the signals.
func SignalsTerm() IndexTerm { return IndexTerm{Text: signalsTerm} }

// signalsTerm is no stem of a word.
const signalsTerm = "signals" + stemMark

// maxSignalWords bounds how many words of an entry are searched for signals when it is indexed.
const maxSignalWords = 2000

// AddSignals adds the term of signals to the terms of a user's texts, if they have one.
func AddSignals(terms []string, texts ...string) []string {
	for _, text := range texts {
		scanner := SignalScanner{}
		for token := range Tokens(text) {
			scanner.Word(token.Text, EndsSignal(token.Text))
			if scanner.Signals != (Signals{}) {
				return append(terms, signalsTerm)
			}
			if scanner.seen == maxSignalWords {
				break
			}
		}
	}
	return terms
}

// SignalScanner finds signals in the words of a text.
type SignalScanner struct {
	Signals
	seen int
	last [3]string // the words before, the newest first
}

func phraseSet(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.SplitSeq(text, ",") {
		set[strings.Join(strings.Fields(line), " ")] = true
	}
	return set
}

// The phrases have at most four words. An apostrophe separates words.
var (
	cues = phraseSet(`always, never, from now on, please make sure, please ensure, please remember, please use, please include, please avoid,
please keep, make sure, i prefer, i d prefer, i would prefer, i d rather, i like to, i don t like, i dont like, i only,
i want you to, whenever, don t use, don t include, don t mention, dont use, dont include, dont mention`)
	preferences = phraseSet(`prefer, prefers, preferred, preferring, preference, preferences, rather than, instead of, favorite, favourite`)
	standings   = phraseSet(`always, never, please always, please make sure, please remember, please don t, please do not, please ensure,
please use, please include, from now on, remember to, remember that, make sure, don t ever, i prefer, i d prefer, i d rather,
i want you to, going forward`)
	whenAsked = phraseSet(`when i ask, whenever i ask`)
)

// phraseEnds are the last words of all phrases.
var phraseEnds = func() map[string]bool {
	ends := map[string]bool{}
	for _, set := range []map[string]bool{cues, preferences, standings, whenAsked} {
		for phrase := range set {
			ends[phrase[strings.LastIndexByte(phrase, ' ')+1:]] = true
		}
	}
	return ends
}()

// EndsSignal reports whether a phrase of signals ends with a folded word.
func EndsSignal(word string) bool { return phraseEnds[word] }

// Word takes the next folded word of the text; ends is the result of EndsSignal for it.
func (s *SignalScanner) Word(text string, ends bool) {
	phrase := text
	for n := 0; ends; n++ {
		s.Cue = s.Cue || cues[phrase]
		s.Prefers = s.Prefers || preferences[phrase]
		s.Standing = s.Standing || whenAsked[phrase] || s.seen == n && standings[phrase]
		if n == len(s.last) || s.last[n] == "" {
			break
		}
		phrase = s.last[n] + " " + phrase
	}
	s.last[2], s.last[1], s.last[0] = s.last[1], s.last[0], text
	s.seen++
}
