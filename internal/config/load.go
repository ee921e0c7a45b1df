package config

import (
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
)

// Options configures where Load reads settings from. The zero value finds the file and reads nothing else.
type Options struct {
	// File is the settings file, which must exist. Default: ./continuo.yaml, or else
	// $XDG_CONFIG_HOME/continuo/continuo.yaml (~/.config when that is not set), or else none.
	File string
	// Env is the environment as os.Environ gives it. Default: empty, also without a home folder.
	Env []string
	// Flags holds what flags set: key → value, as text.
	Flags map[string]string
	// FlagNames maps a key of Flags to the flag that set it, without dashes, for origins and errors. Default for each
	// key: "set KEY".
	FlagNames map[string]string
	// Views are the names of the views that agents may have. Default: any name.
	Views []string
}

// Load reads the settings. If anything is wrong with them it returns no Config but one error that joins all problems,
// one per line: the file's in the order of its lines, then those of the environment, those of the flags, and conflicts
// between settings.
func Load(options Options) (*Config, error) {
	l := newLoader(options.Env)
	l.views = options.Views
	l.loadFile(options.File)
	l.loadEnv()
	l.loadFlags(options)
	l.finish()
	if err := l.problems.err(); err != nil {
		return nil, err
	}
	return l.config, nil
}

// loader applies one layer after the other to a Config.
type loader struct {
	config   *Config
	env      map[string]string
	entries  []*entry
	views    []string // the views that agents may have
	broken   bool     // the file could not be read, so that its models are unknown
	problems problems

	table // the settings outside of groups
}

func newLoader(environ []string) *loader {
	l := &loader{config: &Config{Models: map[string]ModelConfig{}, Upstreams: map[string]UpstreamConfig{}, Webhooks: map[string]WebhookConfig{}, Agents: map[string]AgentConfig{}, Connectors: map[string]ConnectorConfig{}, MCP: MCPConfig{Servers: map[string]MCPServerConfig{}}}, env: map[string]string{}}
	for _, variable := range environ {
		if name, text, ok := strings.Cut(variable, "="); ok {
			l.env[name] = text
		}
	}
	l.table = binder{home: l.home()}.settings("", l.config)
	if folder := l.xdg("XDG_DATA_HOME", ".local/share"); folder != "" {
		l.row("store.path").setDefault(filepath.Join(folder, "continuo", "continuo.db"))
	}
	return l
}

// home returns the home folder, "" if unknown.
func (l *loader) home() string {
	home := l.env["HOME"]
	if home == "" && runtime.GOOS == "windows" {
		home = l.env["USERPROFILE"]
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Clean(home)
}

// xdg returns a folder of the XDG Base Directory Specification, which requires that relative paths are ignored; "" if
// there is none.
func (l *loader) xdg(variable, below string) string {
	if folder := l.env[variable]; filepath.IsAbs(folder) {
		return folder
	}
	if home := l.home(); home != "" {
		return filepath.Join(home, below)
	}
	return ""
}

// ownVariables are read by Continuo's tests and are no settings.
var ownVariables = [...]string{"CONTINUO_DATA", "CONTINUO_LONG", "CONTINUO_NPM_DIR", "CONTINUO_SEED"}

func (l *loader) loadEnv() {
	rows, names := map[string]*setting{}, []string{}
	for _, row := range l.table {
		rows[row.env] = row
		names = append(names, strings.TrimPrefix(row.env, envPrefix))
	}
	for _, variable := range slices.Sorted(maps.Keys(l.env)) {
		if !strings.HasPrefix(variable, envPrefix) || slices.Contains(ownVariables[:], variable) {
			continue
		}
		if row := rows[variable]; row != nil {
			l.apply(row, rawValue{text: l.env[variable], origin: Origin{Kind: FromEnv, Name: variable}})
			continue
		}
		l.config.ignored = append(l.config.ignored, IgnoredVariable{Name: keyText(variable), Advice: adviceOnVariable(variable, names)})
	}
}

// adviceOnVariable says how to set what a variable that is no setting was perhaps meant to set; "" if that is unknown.
func adviceOnVariable(variable string, names []string) string {
	if group := groupOfVariable(variable); group != nil {
		return group.many + " are set in the file only"
	}
	if near := nearest.Name(strings.TrimPrefix(variable, envPrefix), names); near != "" {
		return "did you mean " + envPrefix + near + "?"
	}
	return ""
}

func groupOfVariable(variable string) *group {
	for _, g := range groups {
		if strings.HasPrefix(variable, envName(g.section())) {
			return g
		}
	}
	return nil
}

func (l *loader) loadFlags(options Options) {
	for _, key := range slices.Sorted(maps.Keys(options.Flags)) {
		flag := "--set " + keyText(key)
		if name := options.FlagNames[key]; name != "" {
			flag = "--" + name
		}
		origin := Origin{Kind: FromFlag, Name: flag}
		section, _, _ := strings.Cut(key, ".")
		group := groupIn(section)
		switch row := l.row(key); {
		case row != nil:
			l.apply(row, rawValue{text: options.Flags[key], origin: origin})
		case group != nil:
			l.problems.add(origin, "%s are set in the file only; write them to continuo.yaml", group.many)
		default:
			l.problems.add(origin, "unknown key %s; %s", keyText(key), l.advice(key))
		}
	}
}

func (l *loader) apply(row *setting, g rawValue) {
	if err := row.apply(g); err != nil {
		l.problems.add(g.origin, "%w", err)
	}
}

// finish checks conditions over several settings and makes the lists for doctor.
func (l *loader) finish() {
	c := l.config
	c.Chat.MaxContextTokensGiven = l.row("chat.max_context_tokens").origin.Kind != FromDefault
	l.loadCatalogue()
	l.checkStore()
	l.checkTelegram()
	if !slices.Contains(c.AnswerNames(), c.DefaultModel) && !l.broken {
		l.problems.add(l.row("model").origin, "model: given %s, which is not there; %s", quoted(c.DefaultModel), modelAdvice(c.DefaultModel, c.AnswerNames()))
	}
	l.checkAssistantModel("context.summarizer", c.Context.Summarizer, "summarizer")
	l.checkAssistantModel("memory.extractor", c.Memory.Extractor, "rules")
	if e := c.Recall.Embeddings; e.BaseURL != "" && e.Model == "" {
		l.problems.add(l.row("recall.embeddings.base_url").origin, "recall.embeddings.base_url: a model is missing: set recall.embeddings.model")
	}
	if r := c.Recall.Reranker; r.BaseURL != "" && r.Model == "" {
		l.problems.add(l.row("recall.reranker.base_url").origin, "recall.reranker.base_url: a model is missing: set recall.reranker.model")
	}
	for _, e := range l.entries {
		e.config.check(l, e)
	}
	rows := slices.Clone(l.table)
	c.hints = append(hints(c, l.env), l.telegramHints()...)
	for _, e := range l.entries {
		rows = append(rows, e.table...)
		c.hints = append(c.hints, e.hints...)
	}
	for _, row := range rows {
		c.settings = append(c.settings, row.public())
	}
	slices.SortFunc(c.settings, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
}

// checkAssistantModel refuses a setting that names a model which is not there; what is used without one.
func (l *loader) checkAssistantModel(key, given, what string) {
	if _, ok := l.config.Models[given]; ok || given == "" || l.broken {
		return
	}
	names := slices.Sorted(maps.Keys(l.config.Models))
	if len(names) == 0 {
		l.problems.add(l.row(key).origin, "%s: given %s, and there are no models; leave it empty for the built-in %s", key, quoted(given), what)
		return
	}
	l.problems.add(l.row(key).origin, "%s: given %s, which is no model; the models are %s", key, quoted(given), strings.Join(names, ", "))
}
