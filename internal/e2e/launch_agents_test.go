//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// codingAgent is how one coding agent is run from an empty home, one process for each prompt.
type codingAgent struct {
	name string // for continuo launch
	// in is the path of the program below the folder of npm packages that the tests have, or else, which only long runs
	// look at, below CONTINUO_AGENTS/NAME/node_modules.
	in []string
	// base returns the variables and arguments that point the agent at a model server without continuo launch.
	base func(url string) (env, arguments []string)
	env  []string
	// prepare writes the agent's own settings, with an MCP server.
	prepare func(t *testing.T, home, mcp string)
	// prompt returns the arguments for a prompt; first says that it begins a session, small that the window is so small
	// that the session is compacted.
	prompt func(text string, first, small bool) []string
	// hidesTools says that the mock of models cannot call MCP tools of the agent, which has them in a namespace; bareTool
	// that a prompt cannot have JSON with quotes, as the agent escapes them.
	hidesTools, bareTool bool
}

// session is an id that a client may choose for its session.
const session = "3f0e6a51-6f3b-4c51-9a35-0c8f9f8a7c11"

var codingAgents = []codingAgent{
	{
		name: "qwen", in: []string{"@qwen-code", "qwen-code", "cli-entry.js"},
		base: func(url string) (env, arguments []string) {
			return []string{"OPENAI_BASE_URL=" + url + "/v1"}, []string{"--auth-type", "openai"}
		},
		env: []string{"OPENAI_MODEL=gpt-4o", "QWEN_SANDBOX=false"},
		prepare: func(t *testing.T, home, mcp string) {
			writeIn(t, home, ".qwen/settings.json", fmt.Sprintf(`{"tools":{"toolSearch":{"enabled":false}},"mcpServers":{"ours":{"httpUrl":%q,"trust":true}}}`, mcp))
		},
		prompt: func(text string, first, _ bool) []string {
			return append([]string{"-y", "-p", text}, when(!first, "--continue")...)
		},
	},
	{
		name: "gemini", in: []string{"@google", "gemini-cli", "bundle", "gemini.js"},
		base: func(url string) (env, arguments []string) { return []string{"GOOGLE_GEMINI_BASE_URL=" + url}, nil },
		prepare: func(t *testing.T, home, mcp string) {
			writeIn(t, home, ".gemini/settings.json", fmt.Sprintf(`{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
				"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false},"mcpServers":{"ours":{"httpUrl":%q,"trust":true}}}`, mcp))
		},
		prompt: func(text string, first, _ bool) []string {
			return append([]string{"-m", "gemini-2.5-flash", "--skip-trust", "-y", "-p", text}, when(!first, "-r", "latest")...)
		},
	},
	{
		name: "claude", in: []string{".bin", "claude"},
		base: func(url string) (env, arguments []string) { return []string{"ANTHROPIC_BASE_URL=" + url}, nil },
		env:  []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1", "ENABLE_TOOL_SEARCH=false"},
		prepare: func(t *testing.T, home, mcp string) {
			writeIn(t, home, "mcp.json", fmt.Sprintf(`{"mcpServers":{"ours":{"type":"http","url":%q}}}`, mcp))
		},
		prompt: func(text string, first, small bool) []string {
			if small {
				text = "/compact"
			}
			if first {
				return []string{"-p", text, "--mcp-config", "../mcp.json", "--dangerously-skip-permissions", "--session-id", session}
			}
			return []string{"-p", text, "--mcp-config", "../mcp.json", "--dangerously-skip-permissions", "--resume", session}
		},
	},
	{
		name: "codex", in: []string{".bin", "codex"}, hidesTools: true,
		base: func(url string) (env, arguments []string) {
			return nil, []string{
				"-c", "model_provider=continuo", "-c", "model_providers.continuo.name=continuo", "-c", `model_providers.continuo.wire_api="responses"`,
				"-c", fmt.Sprintf("model_providers.continuo.base_url=%q", url+"/v1"), "-c", `model_providers.continuo.env_key="OPENAI_API_KEY"`,
			}
		},
		prepare: func(t *testing.T, home, mcp string) {
			writeIn(t, home, ".codex/config.toml", fmt.Sprintf("model = \"gpt-5.5\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n[mcp_servers.ours]\nurl = %q\n", mcp))
		},
		prompt: func(text string, first, small bool) []string {
			arguments := append([]string{"exec", "--skip-git-repo-check"}, when(small, "-c", "model_auto_compact_token_limit=2000")...)
			return append(append(arguments, when(!first, "resume", "--last")...), text)
		},
	},
	{
		name: "opencode", in: []string{".bin", "opencode"}, bareTool: true,
		base: func(url string) (env, arguments []string) {
			return []string{`OPENCODE_CONFIG_CONTENT={"provider":{"openai":{"options":{"baseURL":"` + url + `/v1"}},"anthropic":{"options":{"baseURL":"` +
				url + `/v1"}},"google":{"options":{"baseURL":"` + url + `/v1beta"}}}}`}, nil
		},
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		prepare: func(t *testing.T, home, mcp string) {
			writeIn(t, home, "work/opencode.json", fmt.Sprintf(`{"autoupdate":false,"share":"disabled","permission":"allow","mcp":{"ours":{"type":"remote","url":%q,"enabled":true}}}`, mcp))
		},
		prompt: func(text string, first, _ bool) []string {
			return append(append([]string{"run", "-m", "openai/gpt-4o"}, when(!first, "-c")...), text)
		},
	},
}

// when returns words under a condition.
func when(condition bool, words ...string) []string {
	if condition {
		return words
	}
	return nil
}

func writeIn(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// program returns the path of the agent's program; "" where it is not installed.
func (a *codingAgent) program(t *testing.T) string {
	t.Helper()
	for _, path := range []string{
		npmPath(t, a.in...), filepath.Join(append([]string{os.Getenv("CONTINUO_AGENTS"), a.name, "node_modules"}, a.in...)...),
	} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}
