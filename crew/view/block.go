package view

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// part is a part of a role's text before or after the messages: a line, or a block between two lines.
type part struct {
	text    string
	size    continuo.Size
	entry   *continuo.Entry // what it was made from; nil for a line
	cut     bool            // only its beginning and its end are shown
	after   bool            // it is placed after the messages
	request bool            // it is the original request, or the current one
}

// around lists the parts before and after the messages.
func (p *planner) around(l layout) []part {
	b := p.backlog
	var parts []part
	line := func(text string, after bool) {
		parts = append(parts, part{text: text, size: p.sizeOf(text), after: after})
	}
	original := b.original != nil && !p.shows(l, b.original)
	if original {
		parts = append(parts, p.block(l.tight, blockOriginal, b.original.unit.Entries[0]))
	}
	left := l.window.Left
	if l.window.Start == 0 { // the window is being moved
		left = p.left(l)
	}
	if left != 0 {
		line(leftOutLine(left, false), false)
	}
	if l.summary != nil {
		if l.summary.PartType == continuo.PartCatchUp {
			line(leftOutLine(l.summary.Summary.Messages, true), false)
		}
		kind := blockSummary
		if l.summary.PartType == continuo.PartNotes {
			kind = blockNotes
		}
		parts = append(parts, p.block(l.tight, kind, l.summary))
	}
	if b.held != nil {
		line(newerFollows, true)
	}
	if b.newest != nil && !p.shows(l, b.newest) && !(original && b.newest.seq() == b.original.seq()) {
		parts = append(parts, p.block(l.tight, blockCurrent, b.newest.unit.Entries[0]))
	}
	if p.role.Reminder != "" && !l.tight {
		parts = append(parts, p.block(false, blockReminder, nil))
	}
	return parts
}

// leftOutLine replaces messages that are left out; a count of 0 or less means many.
func leftOutLine(count int, summarized bool) string {
	what := "Many earlier messages are left out"
	switch {
	case count == 1:
		what = "1 earlier message is left out"
	case count > 1:
		what = fmt.Sprintf("%d earlier messages are left out", count)
	}
	switch {
	case summarized && count == 1:
		what += "; a summary of it follows"
	case summarized:
		what += "; a summary of them follows"
	}
	return moreBegin + " " + what + "."
}

// newerFollows is placed after the messages where a group whose calls have no results yet is held back.
const newerFollows = moreBegin + " 1 newer message follows in your next turn."

// blockKind is what a block holds.
type blockKind int

const (
	blockOriginal blockKind = iota
	blockCurrent
	blockNotes
	blockSummary
	blockReminder
)

// blockKey identifies a block in the planner's cache.
type blockKey struct {
	kind  blockKind
	tight bool
	seq   int64
}

// block makes a block, once. All but the current request are limited to a share of the limits; tight blocks to a
// share of the room that the newest message of the user leaves.
func (p *planner) block(tight bool, kind blockKind, e *continuo.Entry) part {
	key := blockKey{kind: kind, tight: tight}
	if e != nil {
		key.seq = e.Seq
	}
	made, ok := p.blocks[key]
	if !ok {
		made = p.newBlock(tight, kind, e)
		p.blocks[key] = made
	}
	return made
}

func (p *planner) newBlock(tight bool, kind blockKind, e *continuo.Entry) part {
	text, write := p.blockText(kind, e)
	made := part{entry: e, after: kind == blockCurrent || kind == blockReminder, request: kind == blockOriginal || kind == blockCurrent}
	made.text = write(text)
	made.size = p.sizeOf(made.text)
	var needed continuo.Size
	if newest := p.backlog.newest; tight && newest != nil {
		needed = p.measure(newest, true).Add(leastShown(p.request.EstimatedLimits()))
	}
	available := p.blockLimits(needed)
	if kind == blockCurrent || available.Exceeded(made.size) == "" {
		return made
	}
	made.cut = true
	body, ok := cutTo(text, available, func(cut string) bool { return available.Exceeded(p.sizeOf(write(cut))) == "" })
	if !ok {
		body = headAndTail(text, minCut)
	}
	made.text = write(body)
	made.size = p.sizeOf(made.text)
	return made
}

// blockText returns the content of a block, and a function that formats it.
func (p *planner) blockText(kind blockKind, e *continuo.Entry) (text string, write func(string) string) {
	b := p.backlog
	switch kind {
	case blockOriginal:
		return b.original.raw, between(requestBegin, requestEnd, b.original.text)
	case blockCurrent:
		return b.newest.raw, between(currentBegin, requestEnd, b.newest.text)
	case blockNotes:
		return notesText(e), between(notesBegin, notesEnd, escape)
	case blockSummary:
		return textIn(e), between(summaryBegin, summaryEnd, escape)
	default:
		return p.role.Reminder, between(reminderBegin, reminderEnd, escape)
	}
}

// between places a text, formatted by write, between two lines.
func between(begin, end string, write func(string) string) func(string) string {
	return func(text string) string { return begin + "\n" + write(text) + "\n" + end }
}
