package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// readingCommands are those that change nothing that the audit log is about: they read, or write files of the caller.
var readingCommands = strings.Split(`audit,completion,config check,config get,config schema,context show,conversations list,conversations show,
crew check,crew context,crew init,crew list,crew schema,crew status,doctor,eval recall,export,health,init,keys list,licenses,ls,
memory export,memory list,memory show,projects list,recall explain,replay,run list,run show,search,show,
task list,task logs,task prompt,task show,transcript,usage,version,workflow check,workflow init,workflow list,workflow schema,workflow show,
complete,man`, ",")

// ownEvents are those that record what is asked of them while they run.
var ownEvents = []string{"launch", "mcp", "serve", "telegram"}

// Every command, those of later days too, is in the audit log, or is known not to change anything.
func TestEveryCommandIsAudited(t *testing.T) {
	var grammar cli
	parser, err := newParser(&grammar, &console{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range readingCommands {
		readingCommands[i] = strings.TrimSpace(readingCommands[i])
	}
	var unknown, both []string
	for _, leaf := range parser.Model.Leaves(false) {
		words := strings.Fields(commandPath(leaf))
		name := strings.Join(words, " ")
		_, decides := leaf.Target.Addr().Interface().(interface{ changes() bool })
		changes := decides || isChanging(words)
		reads := slices.Contains(readingCommands, name) || slices.Contains(ownEvents, name)
		switch {
		case changes && reads:
			both = append(both, name)
		case !changes && !reads:
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("neither recorded nor known to change nothing: %q", unknown)
	}
	if len(both) > 0 {
		t.Errorf("recorded, and listed as commands that change nothing: %q", both)
	}
}

// commandPath are the words of a command, without its arguments.
func commandPath(leaf *kong.Node) string {
	words := []string{}
	for node := leaf; node != nil && node.Type == kong.CommandNode; node = node.Parent {
		words = append([]string{node.Name}, words...)
	}
	return strings.Join(words, " ")
}
