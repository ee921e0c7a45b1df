package main

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"

	"github.com/alecthomas/kong"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

func (completionCommand) Help() string {
	return `Writes a script for a shell that completes commands, flags and their values.

Examples:

    source <(continuo completion bash)
    continuo completion zsh > "${fpath[1]}/_continuo"
    continuo completion fish > ~/.config/fish/completions/continuo.fish`
}

// Run writes the script.
func (c *completionCommand) Run(a *app) error {
	a.text(completionScripts[c.Shell])
	return nil
}

// completionScripts call continuo complete with the words of the line up to the cursor. :files means the files that
// begin with the last one.
var completionScripts = map[string]string{
	"bash": `# Completion of continuo for bash. Load it with: source <(continuo completion bash)
_continuo() {
  local line IFS=$'\n'
  COMPREPLY=()
  for line in $(continuo complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
    case "$line" in
      :files) COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _continuo continuo
`,
	"zsh": `#compdef continuo
# Completion of continuo for zsh. Put it into a folder of fpath as _continuo.
_continuo() {
  local line
  local -a list
  for line in "${(@f)$(continuo complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$line" in
      :files) _files ;;
      *$'\t'*) list+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      ?*) list+=("${line//:/\\:}") ;;
    esac
  done
  _describe -V continuo list
}
if [ "$funcstack[1]" = _continuo ]; then _continuo "$@"; else compdef _continuo continuo; fi
`,
	"fish": `# Completion of continuo for fish. Put it into ~/.config/fish/completions/continuo.fish.
function __continuo_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (continuo complete -- $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c continuo -f -a '(__continuo_complete)'
`,
}

// completeCommand writes what can follow in a command line: a word and its meaning per line, with a tab between them.
type completeCommand struct {
	Words []string `arg:"" passthrough:"" help:"The arguments after the program's name; the last one is being typed."`
}

// Run writes the completions.
func (c *completeCommand) Run(ctx context.Context, a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	current := words[len(words)-1]
	node, flag := commandOf(a.parser.Model.Node, words[:len(words)-1])
	if name, value, ok := strings.Cut(current, "="); ok && flag == nil { // zsh and fish do not split --flag=value
		if flag = flagOf(node, name); flag != nil {
			return a.complete(ctx, name+"=", value, completionsOfFlag(flag))
		}
	}
	if flag != nil {
		return a.complete(ctx, "", strings.TrimPrefix(current, "="), completionsOfFlag(flag))
	}
	return a.complete(ctx, "", current, completionsOf(node))
}

// commandOf returns the command that words name, and the flag before the cursor that lacks its value.
func commandOf(node *kong.Node, words []string) (*kong.Node, *kong.Flag) {
	var flag *kong.Flag
	for _, word := range words {
		switch {
		case flag != nil && word != "=": // bash splits --flag=value
			flag = nil
		case strings.HasPrefix(word, "-"):
			if found := flagOf(node, word); found != nil && takesValue(found) {
				flag = found
			}
		default:
			for _, child := range node.Children {
				if child.Name == word {
					node = child
					break
				}
			}
		}
	}
	return node, flag
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func takesValue(flag *kong.Flag) bool {
	return !flag.IsBool() && flag.Name != "help" && flag.Name != "version"
}

// completion is a word that can follow, with its meaning, or the names or files that can.
type completion struct {
	word, help string
	names      string
	files      bool
}

// completionsOf lists what can follow a command: its commands, the values of its arguments, and flags.
func completionsOf(node *kong.Node) (all []completion) {
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, completion{word: child.Name, help: child.Help})
		}
	}
	for _, argument := range node.Positional {
		all = append(all, completion{names: strings.ToUpper(argument.Name), files: argument.Name == "file"})
		all = append(all, completionsOfEnum(argument)...)
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			all = append(all, completion{word: "--" + flag.Name, help: flag.Help})
		}
	}
	return all
}

// completionsOfFlag lists the values of a flag.
func completionsOfFlag(flag *kong.Flag) (all []completion) {
	if flag.PlaceHolder == "VIEW" { // also that of a role, which only a crew defines
		for _, name := range catalog.ViewNames() {
			all = append(all, completion{word: name})
		}
		return all
	}
	names := flag.PlaceHolder
	if names == "NAME" {
		names = strings.ToUpper(flag.Name) // MODEL, PROJECT
	}
	files := slices.Contains([]string{"FILE", "PATH", "WHERE"}, flag.PlaceHolder)
	return append(completionsOfEnum(flag.Value), completion{names: names, files: files})
}

func completionsOfEnum(value *kong.Value) (all []completion) {
	if value.Enum == "" {
		return nil
	}
	for _, one := range value.EnumSlice() {
		all = append(all, completion{word: one})
	}
	return all
}

// complete writes the completions of a word; prefix is the part of it before its value.
func (a *app) complete(ctx context.Context, prefix, word string, all []completion) error {
	for _, one := range all {
		if one.files {
			a.print(":files")
		}
		for _, name := range append(a.namesOf(ctx, one.names), one) {
			if name.help == name.word {
				name.help = ""
			}
			if name.word != "" && strings.HasPrefix(name.word, word) {
				a.print("%s", strings.TrimSpace(prefix+name.word+"\t"+term.OneLine(name.help, 200)))
			}
		}
	}
	return nil
}

// mostNames is how many names of things in the store are offered: the newest.
const mostNames = 50

// namesOf lists the names that a placeholder in the help means; what cannot be read has none.
func (a *app) namesOf(ctx context.Context, placeholder string) (names []completion) {
	if placeholder == "" {
		return nil
	}
	settings, err := a.loadSettings()
	if err != nil {
		return nil
	}
	switch placeholder {
	case "AGENT":
		for _, id := range agentIDs(settings) {
			names = append(names, completion{word: id, help: settings.Agents[id].Name})
		}
	case "MODEL":
		for _, name := range settings.AnswerNames() {
			names = append(names, completion{word: name, help: behindModel(settings, name)})
		}
	case "SETTING", "KEY=VALUE":
		end := ""
		if placeholder == "KEY=VALUE" {
			end = "="
		}
		for _, s := range settings.Settings() {
			names = append(names, completion{word: s.Key + end, help: s.Doc})
		}
	case "WORKFLOW":
		found, _ := newWorkflowFolder(settings).Workflows()
		for _, one := range found {
			names = append(names, completion{word: one.ID, help: one.Name})
		}
	case "CREW", "ROLE":
		return crewNames(newCrewFolder(settings), placeholder)
	case "CONV", "SESSION", "RUN", "TASK", "AGENT-ID", "PROJECT":
		w, err := a.wire(ctx)
		if err != nil {
			return nil
		}
		defer w.Close()
		return w.newestNames(ctx, placeholder)
	}
	return names
}

// crewNames lists the crews, or the roles of all of them.
func crewNames(folder crewFolder, placeholder string) (names []completion) {
	found, _ := folder.Crews()
	listed := map[string]bool{}
	for _, one := range found {
		if placeholder == "CREW" {
			names = append(names, completion{word: one.ID, help: one.Name})
			continue
		}
		for _, role := range one.Roles {
			if !listed[role.Name] {
				listed[role.Name] = true
				names = append(names, completion{word: role.Name, help: role.DisplayName})
			}
		}
	}
	return names
}

// newestNames lists the names of the newest conversations, runs, tasks or agents, or those of projects.
func (w *services) newestNames(ctx context.Context, placeholder string) (names []completion) {
	switch placeholder {
	case "CONV", "SESSION":
		found, _, _ := w.list(ctx, mostNames, continuo.ConversationQuery{Kind: continuo.KindUser})
		for _, conversation := range found {
			names = append(names, completion{word: nameOf(conversation), help: conversation.Title})
		}
	case "PROJECT":
		found, _ := w.projects(ctx)
		for _, project := range found {
			names = append(names, completion{word: project.ID})
		}
	case "RUN":
		found, _, _ := w.runs(ctx, continuo.RunQuery{}, mostNames)
		for _, run := range found {
			names = append(names, completion{word: run.ID, help: run.WorkflowID + " " + string(run.State)})
		}
	case "TASK":
		found, _, _ := w.tasks(ctx, mostNames, mostNames, anyTask)
		for _, status := range found {
			names = append(names, completion{word: status.ID})
		}
	case "AGENT-ID":
		found, _ := w.agents(ctx, func(engine.DeployedAgent) bool { return true })
		for _, agent := range found {
			names = append(names, completion{word: agent.ID, help: agent.Type})
		}
	}
	return names
}
