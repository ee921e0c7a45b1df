package fulltext

import (
	"slices"
	"strings"
)

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

// signalPhrase is a phrase that gives a text signals.
type signalPhrase struct {
	before  []string // its words but the last, in the reverse order
	signals Signals
	begins  bool // Standing holds for a text that begins with it
}

// The phrases have at most four words. An apostrophe separates words.
const (
	cues = `always, never, from now on, please make sure, please ensure, please remember, please use, please include, please avoid,
please keep, make sure, i prefer, i d prefer, i would prefer, i d rather, i like to, i don t like, i dont like, i only,
i want you to, whenever, don t use, don t include, don t mention, dont use, dont include, dont mention`
	preferences = `prefer, prefers, preferred, preferring, preference, preferences, rather than, instead of, favorite, favourite`
	standings   = `always, never, please always, please make sure, please remember, please don t, please do not, please ensure,
please use, please include, from now on, remember to, remember that, make sure, don t ever, i prefer, i d prefer, i d rather,
i want you to, going forward`
	whenAsked = `when i ask, whenever i ask`
)

// signalPhrases are the phrases by their last words.
var signalPhrases = func() map[string][]signalPhrase {
	all := map[string][]signalPhrase{}
	add := func(list string, signals Signals, begins bool) {
		for line := range strings.SplitSeq(list, ",") {
			words := strings.Fields(line)
			slices.Reverse(words)
			all[words[0]] = append(all[words[0]], signalPhrase{words[1:], signals, begins})
		}
	}
	add(cues, Signals{Cue: true}, false)
	add(preferences, Signals{Prefers: true}, false)
	add(standings, Signals{Standing: true}, true)
	add(whenAsked, Signals{Standing: true}, false)
	return all
}()

// EndsSignal reports whether a phrase of signals ends with a folded word.
func EndsSignal(word string) bool { return signalPhrases[word] != nil }

// Word takes the next folded word of the text; ends is the result of EndsSignal for it.
func (s *SignalScanner) Word(text string, ends bool) {
	if ends {
		for _, p := range signalPhrases[text] {
			n := len(p.before)
			if (!p.begins || s.seen == n) && slices.Equal(s.last[:n], p.before) {
				s.Cue, s.Prefers, s.Standing = s.Cue || p.signals.Cue, s.Prefers || p.signals.Prefers, s.Standing || p.signals.Standing
			}
		}
	}
	s.last[2], s.last[1], s.last[0] = s.last[1], s.last[0], text
	s.seen++
}
