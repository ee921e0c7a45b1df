package config

import (
	"strconv"
	"strings"
)

// Schema lists all settings, in the order of the sections, without values. The settings of models are under
// models.NAME, those of agents under agents.NAME, those of connectors under connectors.NAME, those of MCP servers under
// mcp.servers.NAME. Defaults that depend on something else are phrases.
func Schema() []Setting {
	var all []Setting
	for _, row := range schemaRows() {
		shown := row.public()
		shown.Value = ""
		if row.phrase != "" {
			shown.Default = row.phrase
		}
		all = append(all, shown)
	}
	return all
}

func schemaRows() table {
	rows := binder{}.settings("", &Config{})
	for _, g := range groups {
		e := &entry{group: g, name: "NAME"}
		rows = append(rows, binder{fileOnly: true}.settings(e.prefix(), g.begin(e.name))...)
	}
	return rows
}

// Markdown writes docs/settings.md: how to set settings, and all of them, in lines of at most 100 characters.
func Markdown() string {
	var page strings.Builder
	page.WriteString(markdownTop)
	section := "?"
	for _, s := range Schema() {
		name, _, dotted := strings.Cut(s.Key, ".")
		if !dotted {
			name = ""
		}
		if name != section {
			section = name
			page.WriteString(markdownSection(section))
		}
		page.WriteString(markdownSetting(s))
	}
	return page.String()
}

const markdownTop = `# Settings

This page is written by the program (` + "`internal/config`" + `); a test keeps it so.

Settings come from four sources, and the later one wins: the defaults, a YAML file, environment
variables, flags. The file is the one that ` + "`--config`" + ` names, or else ` + "`./continuo.yaml`" + `, or else
` + "`$XDG_CONFIG_HOME/continuo/continuo.yaml`" + `; only one is read. ` + "`continuo init`" + ` writes one,
` + "`continuo config set`" + ` changes it, ` + "`continuo config check`" + ` checks it, and ` + "`continuo config get`" + `
prints a value with where it came from; ` + "`continuo doctor`" + ` prints all of them.

In the file, ` + "`context.max_messages`" + ` is the key ` + "`max_messages`" + `, indented below ` + "`context:`" + `.
Relative paths are relative to the folder that the program was started in. A key that does not
exist, a value of the wrong type and a value out of range are errors that say where they are and
what is allowed. An environment variable that begins with ` + "`CONTINUO_`" + ` and is no setting is
ignored with a warning. Editors with a YAML language server check the file as it is written, by the
schema that ` + "`continuo init`" + ` writes beside it (` + "`continuo config schema`" + ` prints it).

API keys are never settings: the file names the environment variable that holds one.
`

func markdownSection(section string) string {
	title, note := section, ""
	if g := groupIn(section); g != nil {
		note = "\n" + strings.Join(wrap(g.note, pageWidth), "\n") + "\n"
	}
	switch section {
	case "":
		title = "general"
	case "crew":
		note = "\nA crew's own file may say otherwise for its roles; see [crews](crews.md).\n"
	}
	return "\n## " + title + "\n" + note
}

const pageWidth = 100

// markdownSetting is a heading with the key, what it means, what is allowed, and the default.
func markdownSetting(s Setting) string {
	lines := []string{"", "### `" + s.Key + "`", ""}
	lines = append(lines, wrap(plain(s.Doc), pageWidth)...)
	lines = append(lines, "")
	item := func(name, text string) {
		for i, line := range wrap(name+": "+text, pageWidth-2) {
			lines = append(lines, map[bool]string{true: "- ", false: "  "}[i == 0]+line)
		}
	}
	item("Allowed", plain(s.Allowed))
	if s.Default != "" {
		item("Default", code(s.Default))
	}
	if s.Env != "" {
		item("Environment", code(s.Env))
	}
	if s.KnownAs != "" {
		item("Known in other documents as", code(s.KnownAs))
	}
	return strings.Join(lines, "\n") + "\n"
}

// plain is a text without what Markdown would read as a tag or as emphasis.
func plain(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

func code(text string) string { return "`" + text + "`" }

// Example writes a continuo.yaml that names every setting with its default and its meaning, all commented out: loading
// it changes nothing.
func Example() string {
	var page strings.Builder
	page.WriteString("# Settings of Continuo. Below its meaning, each setting is shown with its default, commented out with a # at\n# the beginning of the line: remove that #, and nothing else, to change it. continuo doctor prints what\n# is in force and why.\n")
	section := ""
	for _, row := range (binder{}).settings("", &Config{}) {
		if name, _ := splitKey(row.key); name != "" && name != section {
			section = name
			outer, last := splitKey(section)
			page.WriteString("\n" + indentOf(outer) + last + ":\n")
		}
		writeExample(&page, row)
	}
	for _, g := range groups {
		page.WriteString(g.example)
	}
	return page.String()
}

// ExampleWith is Example with a default model, and the models' own settings.
func ExampleWith(model, models string) string {
	text := strings.Replace(Example(), "\n#model: "+DemoModel+"\n", "\nmodel: "+Scalar(model)+"\n", 1)
	return strings.Replace(text, "\nmodels:\n", "\nmodels:\n"+models, 1)
}

// indentOf is the indent of the keys of a section.
func indentOf(section string) string {
	if section == "" {
		return ""
	}
	return strings.Repeat("  ", 1+strings.Count(section, "."))
}

func writeExample(page *strings.Builder, row *setting) {
	section, last := splitKey(row.key)
	indent := indentOf(section)
	if section == "" {
		page.WriteString("\n")
	}
	for _, line := range wrap(row.doc+" Allowed: "+row.value.allowed+".", 100) {
		page.WriteString(indent + "# " + line + "\n")
	}
	text := row.def
	switch {
	case row.example != "":
		text = row.example
	case row.value.setList != nil:
		text = "[" + quoteSigns(text) + "]"
	case text == "":
		text = `""`
	}
	lines := []string{text}
	if row.value.setList != nil {
		lines = wrap(text, 90)
	}
	page.WriteString("#" + indent + last + ": " + strings.Join(lines, "\n#"+indent+"  ") + "\n")
}

const exampleModels = `
# The models there are, besides the built-in demo. Keys stay in the environment: api_key_env names the
# variable that holds one.
models:
#  openai:
#    protocol: openai-chat
#    model: gpt-4.1
#    context_window: 1047576
#  claude:
#    protocol: anthropic-messages
#    model: claude-sonnet-4-5
#    context_window: 200000
#    max_output_tokens: 4096
#  local:
#    protocol: openai-chat
#    base_url: http://127.0.0.1:11434/v1
#    model: qwen3:8b
#    api_key_env: ""
#    context_window: 32768
#    temperature: 0.7
#    headers:
#      X-Title: Continuo
`

const exampleAgents = `
# Who answers in the modes agent and run: a persona, and what it may use. Each has a persona or a
# persona_file. A list as the value of tools names the only ones that the agent may call.
agents:
#  reviewer:
#    name: Reviewer
#    persona: You review code. Name the file and the line of each fault, and say how to fix it.
#    model: claude
#    view: codex
#    tools: [fs.*]
#    max_output_tokens: 2000
#  writer:
#    persona: You write plain, short prose, and ask when you do not know.
#    tools:
#      ask: [conversation.search]
#      deny: [fs.*]
`

const exampleUpstreams = `
# Where clients of the gateway reach models that are not listed under models.
upstreams:
#  anthropic:
#    protocol: anthropic-messages
#    credentials: forward
#    models: ["claude-*"]
`

const exampleConnectors = `
# Programs that answer instead of a model: a command that is started for each answer, or an agent that
# speaks the Agent Client Protocol. Secrets stay in the environment: ${NAME} is the value of a variable.
connectors:
#  claude-code:
#    command: [claude, -p, "{prompt}", "--append-system-prompt={system}"]
#    dir: /srv/project
#    env:
#      ANTHROPIC_API_KEY: ${ANTHROPIC_API_KEY}
#  gemini:
#    acp: [gemini, --acp]
#    timeout: 30m
#    permissions: allow
`

const exampleWebhooks = `
# Receivers of a notice of each turn that ends. Each webhook gets the turns in order, independently of others.
webhooks:
#  billing:
#    url: https://hooks.example.org/continuo
#    secret: ${HOOK_SECRET}
#    projects: [acme]
#    turns: finished
`

const exampleMCP = `
# Programs and services that give models more tools, named NAME.TOOL. Secrets stay in the environment:
# ${NAME} is replaced by the value of a variable.
mcp:
#  servers:
#    files:
#      command: [npx, -y, "@modelcontextprotocol/server-filesystem", /srv/files]
#    tracker:
#      url: https://tracker.example.org/mcp
#      headers:
#        Authorization: Bearer ${TRACKER_TOKEN}
#      timeout: 30s
`

// quoteSigns quotes the items of a list that begin with a character that has a meaning in YAML.
func quoteSigns(list string) string {
	items := strings.Split(list, ", ")
	for i, item := range items {
		if strings.HasPrefix(item, "*") || strings.HasPrefix(item, "!") {
			items[i] = strconv.Quote(item)
		}
	}
	return strings.Join(items, ", ")
}

// wrap breaks a text between words into lines of at most width bytes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
