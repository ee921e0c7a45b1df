package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/config"
)

// crewFolder finds crews in the files of a folder. It is safe for concurrent use.
type crewFolder struct {
	dir   string // "": none are read
	known crew.Known
	// builtIn is the text of a crew that exists too unless the folder has its id; nil for none.
	builtIn []byte
}

// newCrewFolder is the folder of the settings, with the program's example.
func newCrewFolder(settings *config.Config) crewFolder {
	return crewFolder{
		dir:     settings.Crews.Dir,
		known:   crew.Known{Connectors: slices.Sorted(maps.Keys(settings.Connectors)), Models: settings.ModelNames(), Tools: knownTools(settings)},
		builtIn: crew.Example(),
	}
}

func (c crewFolder) files() folder[*crew.Crew] {
	return folder[*crew.Crew]{
		noun: "crew", setting: "crews.dir", dir: c.dir, builtIn: c.builtIn,
		parse: func(file string, text []byte) (*crew.Crew, error) { return crew.Parse(file, text, c.known) },
		id:    func(one *crew.Crew) string { return one.ID },
	}
}

// Crew finds one by id. If its file is invalid, the problems say why.
func (c crewFolder) Crew(id string) (*crew.Crew, error) { return c.files().find(id) }

// Crews lists the valid ones by id, with the problems of the others.
func (c crewFolder) Crews() ([]*crew.Crew, error) { return c.files().list() }

// botTokens looks up the tokens of the roles' own Telegram bots, by role, in an environment in the form of os.Environ.
// A role whose variable is not set has none; unset names those variables, each once.
func botTokens(one *crew.Crew, env []string) (tokens map[string]string, unset []string) {
	tokens = map[string]string{}
	for _, role := range one.Roles {
		if role.BotToken == "" {
			continue
		}
		if token := strings.TrimSpace(envValue(env, role.BotToken)); token != "" {
			tokens[role.Name] = token
		} else if !slices.Contains(unset, role.BotToken) {
			unset = append(unset, role.BotToken)
		}
	}
	return tokens, unset
}
