package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/continuo-log/continuo/engine"
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
	commands := completions(a.parser.Model.Node, "")
	switch c.Shell {
	case "bash":
		writeBash(a.out, commands)
	case "zsh":
		writeZsh(a.out, commands)
	default:
		writeFish(a.out, commands)
	}
	return nil
}

// namesCommand writes names for completion scripts, one per line; the scripts call it while a person types.
type namesCommand struct {
	Of string `arg:"" enum:"agents,workflows,runs,tasks,deployed,crews,roles"`
}

// Run writes the names.
func (n *namesCommand) Run(ctx context.Context, a *app) error {
	switch n.Of {
	case "workflows":
		return a.workflowNames()
	case "runs":
		return a.runNames(ctx)
	case "tasks":
		return a.taskNames(ctx)
	case "deployed":
		return a.deployedNames(ctx)
	case "crews":
		return a.crewNames()
	case "roles":
		return a.roleNames()
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	for _, id := range agentIDs(settings) {
		a.print("%s", id)
	}
	return nil
}

// namesOf returns which names are the values of a flag or an argument, by its placeholder in the help.
func namesOf(placeholder string) string {
	return map[string]string{
		"AGENT": "agents", "WORKFLOW": "workflows", "RUN": "runs", "TASK": "tasks", "AGENT-ID": "deployed", "CREW": "crews", "ROLE": "roles",
	}[placeholder]
}

// asked is the command that a shell runs for names.
func asked(names string) string { return "$(continuo names " + names + " 2>/dev/null)" }

// completionOf is the completions of one command.
type completionOf struct {
	path  string // "" for the program itself, else the command's words: "conversations list"
	words []completionWord
	flags []completionFlag
	files bool   // its arguments are files
	names string // its arguments are these names
}

type completionWord struct{ name, help string }

type completionFlag struct {
	completionWord        // the name without its dashes
	takesValue     bool   // the next word is its value
	values         string // its allowed values separated by spaces, "" if unknown
	names          string // its values are these names
	files          bool   // its value is a file
}

// completions lists a command and all its subcommands.
func completions(node *kong.Node, path string) []completionOf {
	own := completionOf{path: path}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			own.flags = append(own.flags, completionFlag{
				completionWord: completionWord{flag.Name, flag.Help},
				takesValue:     !flag.IsBool() && flag.Name != "help" && flag.Name != "version",
				values:         strings.Join(valuesOf(flag), " "),
				names:          namesOf(flag.PlaceHolder),
				files:          slices.Contains([]string{"FILE", "PATH", "WHERE"}, flag.PlaceHolder),
			})
		}
	}
	for _, argument := range node.Positional {
		own.files = own.files || argument.Name == "file"
		own.names = cmp.Or(own.names, namesOf(strings.ToUpper(argument.Name)))
		for _, value := range enumOf(argument) {
			own.words = append(own.words, completionWord{value, ""})
		}
	}
	all := []completionOf{own}
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		all[0].words = append(all[0].words, completionWord{child.Name, child.Help})
		all = append(all, completions(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	return all
}

// valuesOf lists the known values of a flag. A view can also be that of a role, which only a crew defines.
func valuesOf(flag *kong.Flag) []string {
	if flag.PlaceHolder == "VIEW" {
		return engine.ViewNames()
	}
	return enumOf(flag.Value)
}

func enumOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}

// quote quotes any text as a word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// writePathCases writes the cases with which a shell function maps the words of a line to commands.
func writePathCases(w io.Writer, commands []completionOf) {
	for _, command := range commands[1:] {
		parent, name := "", command.path
		if at := strings.LastIndexByte(command.path, ' '); at >= 0 {
			parent, name = command.path[:at], command.path[at+1:]
		}
		fmt.Fprintf(w, "      %s) command=%s ;;\n", quote(parent+":"+name), quote(command.path))
	}
}

// valueFlags returns the flags that take a value, by the path of their command.
func valueFlags(commands []completionOf) map[string][]completionFlag {
	byPath := map[string][]completionFlag{}
	for _, command := range commands {
		for _, flag := range command.flags {
			if flag.takesValue {
				byPath[command.path] = append(byPath[command.path], flag)
			}
		}
	}
	return byPath
}

func writeBash(w io.Writer, commands []completionOf) {
	fmt.Fprint(w, `# Completion of continuo for bash. Load it with: source <(continuo completion bash)
_continuo() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command:$word" in
`)
	writePathCases(w, commands)
	fmt.Fprint(w, "    esac\n  done\n  case \"$command:$before\" in\n")
	values := valueFlags(commands)
	for _, command := range commands {
		for _, flag := range values[command.path] {
			reply := "return"
			if flag.files {
				reply = `COMPREPLY=($(compgen -f -- "$current")); return`
			} else if flag.values != "" {
				reply = fmt.Sprintf(`COMPREPLY=($(compgen -W %s -- "$current")); return`, quote(flag.values))
			} else if flag.names != "" {
				reply = fmt.Sprintf(`COMPREPLY=($(compgen -W "%s" -- "$current")); return`, asked(flag.names))
			}
			fmt.Fprintf(w, "    %s) %s ;;\n", quote(command.path+":--"+flag.name), reply)
		}
	}
	fmt.Fprint(w, "  esac\n  case \"$command\" in\n")
	for _, command := range commands {
		words := []string{}
		for _, word := range command.words {
			words = append(words, word.name)
		}
		for _, flag := range command.flags {
			words = append(words, "--"+flag.name)
		}
		files := ""
		if command.files {
			files = ` $(compgen -f -- "$current")`
		}
		if command.names != "" {
			files += fmt.Sprintf(` $(compgen -W "%s" -- "$current")`, asked(command.names))
		}
		fmt.Fprintf(w, "    %s) COMPREPLY=($(compgen -W %s -- \"$current\")%s) ;;\n", quote(command.path), quote(strings.Join(words, " ")), files)
	}
	fmt.Fprint(w, "  esac\n}\ncomplete -F _continuo continuo\n")
}

func writeZsh(w io.Writer, commands []completionOf) {
	fmt.Fprint(w, `#compdef continuo
# Completion of continuo for zsh. Put it into a folder of fpath as _continuo.
_continuo() {
  local command="" word before="${words[CURRENT-1]}"
  local -a list
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$command:$word" in
`)
	writePathCases(w, commands)
	fmt.Fprint(w, "    esac\n  done\n  case \"$command:$before\" in\n")
	values := valueFlags(commands)
	for _, command := range commands {
		for _, flag := range values[command.path] {
			reply := "return"
			if flag.files {
				reply = "_files; return"
			} else if flag.values != "" {
				reply = fmt.Sprintf("compadd -- %s; return", flag.values)
			} else if flag.names != "" {
				reply = fmt.Sprintf(`compadd -- ${(f)"%s"}; return`, asked(flag.names))
			}
			fmt.Fprintf(w, "    %s) %s ;;\n", quote(command.path+":--"+flag.name), reply)
		}
	}
	fmt.Fprint(w, "  esac\n  case \"$command\" in\n")
	for _, command := range commands {
		fmt.Fprintf(w, "    %s) list=(\n", quote(command.path))
		for _, word := range command.words {
			fmt.Fprintf(w, "      %s\n", quote(describe(word)))
		}
		for _, flag := range command.flags {
			fmt.Fprintf(w, "      %s\n", quote(describe(completionWord{"--" + flag.name, flag.help})))
		}
		files := ""
		if command.files {
			files = "_files; "
		}
		if command.names != "" {
			files += fmt.Sprintf(`list+=(${(f)"%s"}); `, asked(command.names))
		}
		fmt.Fprintf(w, "    ); %s_describe -V continuo list ;;\n", files)
	}
	fmt.Fprint(w, "  esac\n}\nif [ \"$funcstack[1]\" = _continuo ]; then _continuo \"$@\"; else compdef _continuo continuo; fi\n")
}

// describe formats a word with its meaning for zsh's _describe.
func describe(word completionWord) string {
	name := strings.ReplaceAll(word.name, ":", `\:`)
	if word.help == "" {
		return name
	}
	return name + ":" + word.help
}

func writeFish(w io.Writer, commands []completionOf) {
	fmt.Fprint(w, `# Completion of continuo for fish. Put it into ~/.config/fish/completions/continuo.fish.
function __continuo_at
  set -l command ''
  for word in (commandline -opc)[2..-1]
    switch "$command:$word"
`)
	for _, command := range commands[1:] {
		parent, name := "", command.path
		if at := strings.LastIndexByte(command.path, ' '); at >= 0 {
			parent, name = command.path[:at], command.path[at+1:]
		}
		fmt.Fprintf(w, "      case %s\n        set command %s\n", fishQuote(parent+":"+name), fishQuote(command.path))
	}
	fmt.Fprint(w, "    end\n  end\n  test \"$command\" = \"$argv[1]\"\nend\ncomplete -c continuo -f\n")
	for _, command := range commands {
		at := fmt.Sprintf("complete -c continuo -n %s", fishQuote("__continuo_at "+fishQuote(command.path)))
		if command.files {
			fmt.Fprintf(w, "%s -F\n", at)
		}
		if command.names != "" {
			fmt.Fprintf(w, "%s -a %s\n", at, fishQuote("("+strings.Trim(asked(command.names), "$()")+")"))
		}
		for _, word := range command.words {
			fmt.Fprintf(w, "%s -a %s -d %s\n", at, fishQuote(word.name), fishQuote(word.help))
		}
		for _, flag := range command.flags {
			value := ""
			switch {
			case flag.files:
				value = " -r -F"
			case flag.values != "":
				value = " -x -a " + fishQuote(flag.values)
			case flag.names != "":
				value = " -x -a " + fishQuote("("+strings.Trim(asked(flag.names), "$()")+")")
			case flag.takesValue:
				value = " -x"
			}
			fmt.Fprintf(w, "%s -l %s%s -d %s\n", at, flag.name, value, fishQuote(flag.help))
		}
	}
}

// fishQuote quotes any text as a word of fish.
func fishQuote(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", `\'`) + "'"
}
