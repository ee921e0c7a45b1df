package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMCPServers(t *testing.T) {
	config := mustLoad(t, `
mcp:
  servers:
    files:
      command: [npx, -y, some-server, "--token=canary"]
      dir: ~/work
      env: {PLAIN: "a b", GITHUB_TOKEN: "${GH}", BOTH: "${GH}-${NONE}"}
      timeout: 90s
    tracker:
      url: https://example.org/mcp/
      headers: {authorization: "Bearer ${GH}"}
    off:
      command: [x]
      enabled: false
      env: {A: "${NONE}"}
`, Options{Env: []string{"HOME=/home/ada", "GH=canary"}})
	want := map[string]MCPServerConfig{
		"files": {
			Name: "files", Enabled: true, Command: []string{"npx", "-y", "some-server", "--token=canary"}, Dir: "/home/ada/work", Timeout: 90 * time.Second,
			Env: map[string]string{"PLAIN": "a b", "GITHUB_TOKEN": "canary", "BOTH": "canary-"}, Headers: map[string]string{},
		},
		"tracker": {Name: "tracker", Enabled: true, URL: "https://example.org/mcp/", Env: map[string]string{}, Headers: map[string]string{"Authorization": "Bearer canary"}},
		"off":     {Name: "off", Command: []string{"x"}, Env: map[string]string{"A": ""}, Headers: map[string]string{}},
	}
	if !reflect.DeepEqual(config.MCP.Servers, want) {
		t.Errorf("servers:\n%+v\nwant:\n%+v", config.MCP.Servers, want)
	}
	for key, value := range map[string]string{
		"mcp.servers.files.command": "npx and 3 arguments", "mcp.servers.files.env": "BOTH, GITHUB_TOKEN, PLAIN", "mcp.servers.files.timeout": "1m30s",
		"mcp.servers.tracker.headers": "Authorization", "mcp.servers.tracker.timeout": "", "mcp.servers.off.enabled": "false", "mcp.servers.off.command": "x",
	} {
		if got := find(t, config, key).Value; got != value {
			t.Errorf("%s shows %q, want %q", key, got, value)
		}
	}
	for _, s := range config.Settings() {
		if strings.Contains(s.Value+s.Default+s.Origin.String(), "canary") {
			t.Errorf("doctor would show the secret: %+v", s)
		}
	}
	if hints := strings.Join(config.Hints(), "\n"); !strings.Contains(hints, "the MCP server files takes NONE from the environment") || strings.Contains(hints, "off") {
		t.Errorf("the hints are %s", hints)
	}
}

func TestMCPRefused(t *testing.T) {
	const kindOfURL = "an http or https URL with a host and without user, query and fragment, such as http://127.0.0.1:3000/mcp; a key goes into headers"
	for text, want := range map[string]string{
		"mcp: 5\n":                                                               `continuo.yaml:1:6: mcp is no setting but a section: write servers: indented below it`,
		"mcp: {server: {}}\n":                                                    `continuo.yaml:1:7: unknown key mcp.server; its only key is servers`,
		"mcp: {x: {}}\n":                                                         `continuo.yaml:1:7: unknown key mcp.x; its only key is servers`,
		"mcp: {servers: []}\n":                                                   `continuo.yaml:1:16: mcp.servers: not a mapping; write each server's name, and its settings indented below it`,
		"mcp.servers: {}\n":                                                      `continuo.yaml:1:1: the key mcp.servers must be written as servers, indented below mcp:`,
		"mcp: {servers: {A: {command: [x]}}}\n":                                  `continuo.yaml:1:17: mcp.servers: "A" is no name for a server; allowed: a small letter, then at most 31 small letters, digits, _ and -`,
		"mcp: {servers: {fs: {command: [x]}}}\n":                                 `continuo.yaml:1:17: mcp.servers.fs: the name fs is taken by built-in tools; choose another`,
		"mcp: {servers: {a: x}}\n":                                               `continuo.yaml:1:20: mcp.servers.a: not a mapping; write the server's settings indented below its name`,
		"mcp: {servers: {a: {}}}\n":                                              `continuo.yaml:1:17: mcp.servers.a: neither command nor url is there; a server needs one of them`,
		"mcp: {servers: {a: {comand: [x]}}}\n":                                   `continuo.yaml:1:21: unknown key mcp.servers.a.comand; did you mean mcp.servers.a.command?`,
		"mcp: {servers: {a: {colour: [x]}}}\n":                                   `continuo.yaml:1:21: unknown key mcp.servers.a.colour; the keys of an MCP server are command, dir, enabled, env, headers, timeout, url`,
		"mcp: {servers: {a: {command: npx canary}}}\n":                           `continuo.yaml:1:30: mcp.servers.a.command: given a text of 10 characters (not repeated, it may be secret); allowed: a list of a program and its arguments, such as [npx, -y, some-server]`,
		"mcp: {servers: {a: {command: []}}}\n":                                   `continuo.yaml:1:30: mcp.servers.a.command: given a list; allowed: a list of a program and its arguments, such as [npx, -y, some-server]`,
		"mcp: {servers: {a: {command: [x], url: 'http://h'}}}\n":                 `continuo.yaml:1:40: mcp.servers.a.url: there is a command too; a server has one of them`,
		"mcp: {servers: {a: {command: [x], headers: {A: b}}}}\n":                 `continuo.yaml:1:45: mcp.servers.a.headers: only a server with a url has headers`,
		"mcp: {servers: {a: {url: 'http://h', env: {A: b}}}}\n":                  `continuo.yaml:1:44: mcp.servers.a.env: only a server with a command has env`,
		"mcp: {servers: {a: {url: 'http://h?key=canary'}}}\n":                    `continuo.yaml:1:26: mcp.servers.a.url: given a text of 19 characters (not repeated, it may be secret); allowed: ` + kindOfURL,
		"mcp: {servers: {a: {url: 'http://h', headers: {x-api-key: canary}}}}\n": `continuo.yaml:1:48: mcp.servers.a.headers: X-Api-Key looks as if it carried a secret; secrets are never written in the file: write ${NAME} for the environment variable that holds it`,
		"mcp: {servers: {a: {command: [x], env: {MY_TOKEN: canary}}}}\n":         `continuo.yaml:1:41: mcp.servers.a.env: MY_TOKEN looks as if it carried a secret; secrets are never written in the file: write ${NAME} for the environment variable that holds it`,
		"mcp: {servers: {a: {command: [x], env: {A: 5}}}}\n":                     `continuo.yaml:1:44: mcp.servers.a.env: the value of A is no text; put it in quotes`,
		"mcp: {servers: {a: {url: 'http://h', headers: {A b: c}}}}\n":            `continuo.yaml:1:48: mcp.servers.a.headers: "A b": not a header name; allowed: letters, digits and -`,
		"mcp: {servers: {a: {url: 'http://h', headers: {A: '${BAD}'}}}}\n":       `continuo.yaml:1:51: mcp.servers.a.headers: the value of A is not one line of text without spaces around it`,
	} {
		_, err := load(t, text, Options{Env: []string{"BAD=canary\nX: y"}})
		if err == nil || err.Error() != want {
			t.Errorf("%s got %v\nwant %s", text, err, want)
		}
	}
	for _, options := range []Options{{Flags: map[string]string{"mcp.servers.a.url": "x"}}} {
		if _, err := load(t, "", options); err == nil || !strings.Contains(err.Error(), "MCP servers are set in the file only") {
			t.Errorf("%+v gives %v", options, err)
		}
	}
}
