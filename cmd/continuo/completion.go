package main

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"

	"github.com/alecthomas/kong"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
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
      :files)
        COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}"))
        compopt -o filenames 2>/dev/null
        ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
  if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _continuo continuo
`,
	"zsh": `#compdef continuo
# Completion of continuo for zsh. Put it into a folder of fpath as _continuo.
_continuo() {
  local line
  local -a list open
  for line in "${(@f)$(continuo complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$line" in
      :files) _files ;;
      *=|*=$'\t'*) open+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *$'\t'*) list+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      ?*) list+=("${line//:/\\:}") ;;
    esac
  done
  _describe -V continuo open -S ''
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

// Run writes the completions. Flags are offered where one is begun, and where there is nothing else.
func (c *completeCommand) Run(ctx context.Context, a *app) error {
	at := readTyped(a.parser.Model.Node, c.Words)
	found := a.matching(ctx, at.word, at.completions())
	if len(found) == 0 && at.flag == nil && at.word == "" {
		found = completionsOfFlags(at.node)
	}
	for _, one := range found {
		if one.files {
			a.print(":files")
			continue
		}
		if one.help == one.word {
			one.help = ""
		}
		a.print("%s", strings.TrimSpace(at.prefix+strings.TrimPrefix(one.word, at.cut)+"\t"+term.OneLine(one.help, 200)))
	}
	return nil
}

// completion is a word that can follow, with its meaning, or the names or files that can.
type completion struct {
	word, help string
	names      string
	files      bool
}

// completionsOf lists what can follow a command and the arguments that it has: its commands, or values of an argument.
func completionsOf(node *kong.Node, given []string) (all []completion) {
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, completion{word: child.Name, help: child.Help})
		}
	}
	last := len(node.Positional) - 1
	if last < 0 || len(given) > last && !node.Positional[last].IsCumulative() {
		return all
	}
	argument := node.Positional[min(len(given), last)]
	if argument.Name == "value" { // of config set
		return append(all, completion{names: "VALUE " + given[0]})
	}
	all = append(all, completion{names: strings.ToUpper(argument.Name), files: argument.Name == "file"})
	return append(all, completionsOfEnum(argument)...)
}

// completionsOfFlags lists the flags of a command.
func completionsOfFlags(node *kong.Node) (all []completion) {
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

// matching lists what begins with a word: names are those of things in the store or the settings.
func (a *app) matching(ctx context.Context, word string, all []completion) (found []completion) {
	for _, one := range all {
		if one.files {
			found = append(found, completion{files: true})
		}
		one.files = false
		for _, name := range append(a.namesOf(ctx, one.names), one) {
			if name.word != "" && strings.HasPrefix(name.word, word) {
				found = append(found, name)
			}
		}
	}
	return found
}

// keyValue is the placeholder of a flag that takes a setting with its value.
const keyValue = "KEY=VALUE"

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
	if key, ok := strings.CutPrefix(placeholder, "VALUE "); ok {
		return valuesOf(settings, key)
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
	case "SETTING", keyValue:
		end := ""
		if placeholder == keyValue {
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

// valuesOf lists the values of a setting, where they are a few words.
func valuesOf(settings *config.Config, key string) (values []completion) {
	for _, s := range settings.Settings() {
		if s.Key == key {
			for _, value := range s.Values() {
				values = append(values, completion{word: value})
			}
		}
	}
	return values
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
