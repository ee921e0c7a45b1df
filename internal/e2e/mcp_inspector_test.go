package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// inspector is the command line of the public MCP inspector, and what it asks: a URL or a program.
type inspector struct {
	t      *testing.T
	target []string
	dir    string
}

// run runs a method and decodes its answer.
func (i inspector) run(into any, arguments ...string) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), 10*time.Minute)
	defer cancel()
	script := npmFile(i.t, "@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
	command := exec.CommandContext(ctx, newNode(i.t), append(append([]string{script, "--cli"}, i.target...), arguments...)...)
	command.Dir, command.Env = i.dir, []string{"HOME=" + i.dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	var complaints strings.Builder
	command.Stderr = &complaints
	said, err := command.Output()
	if err != nil {
		i.t.Fatalf("%v: %v\n%s\n%s", arguments, err, said, complaints.String())
	}
	if err := json.Unmarshal(said, into); err != nil {
		i.t.Fatalf("%v: %v\n%s", arguments, err, said)
	}
}

// call calls a tool and returns the structured result.
func (i inspector) call(name string, pairs ...string) map[string]any {
	i.t.Helper()
	var result struct {
		IsError           bool
		StructuredContent map[string]any
	}
	arguments := []string{"--method", "tools/call", "--tool-name", name}
	for _, pair := range pairs {
		arguments = append(arguments, "--tool-arg", pair)
	}
	i.run(&result, arguments...)
	if result.IsError {
		i.t.Fatalf("%s %v: %v", name, pairs, result.StructuredContent)
	}
	return result.StructuredContent
}

// The inspector lists every tool without a complaint about its schemas, and calls each of them.
func TestMCPInspector(t *testing.T) {
	if os.Getenv("CONTINUO_LONG") == "" {
		t.Skip("SKIPPED: the inspector is started for each of 25 requests; it needs CONTINUO_LONG=1, as in .ci/run")
	}
	t.Parallel()
	s := serve(t, "log:\n  level: warn\n")
	s.ask(t, "s1", "", "The tap in the kitchen drips.", false)
	i := inspector{t, []string{s.url + "/mcp", "--transport", "http"}, t.TempDir()}
	called := i.everyTool()
	var listed struct{ Tools []struct{ Name string } }
	i.run(&listed, "--method", "tools/list", "--strict")
	for _, tool := range listed.Tools {
		if !called[tool.Name] {
			t.Errorf("%s was not called", tool.Name)
		}
	}
	if len(listed.Tools) != len(called) {
		t.Errorf("listed are %+v, called were %v", listed.Tools, called)
	}
	var resources struct{ Resources []struct{ URI string } }
	if i.run(&resources, "--method", "resources/list"); len(resources.Resources) < 2 {
		t.Errorf("the resources are %+v", resources)
	}
	var read struct{ Contents []struct{ Text string } }
	i.run(&read, "--method", "resources/read", "--uri", "continuo://conversations/s1/transcript")
	if len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, "$user: The tap") {
		t.Errorf("the transcript is %+v", read)
	}
	var prompt struct{ Messages []any }
	i.run(&prompt, "--method", "prompts/get", "--prompt-name", "hand_off", "--prompt-args", "conversation=s1")
	if len(prompt.Messages) != 1 {
		t.Errorf("the prompt is %+v", prompt)
	}
}

// everyTool gives work away and looks at everything of it.
func (i inspector) everyTool() (called map[string]bool) {
	i.t.Helper()
	called = map[string]bool{}
	call := func(name string, pairs ...string) map[string]any {
		called[name] = true
		return i.call(name, pairs...)
	}
	found := call("search_conversations", "query=kitchen")["matches"].([]any)
	conversation := found[0].(map[string]any)["conversation_id"]
	task := call("create_real_task", "description=Mend the tap", fmt.Sprintf("conversation_history=%q", conversation))["task_id"]
	if prompt := call("get_task_prompt", fmt.Sprint("task_id=", task))["prompt"]; !strings.Contains(prompt.(string), "The tap in the kitchen drips.") {
		i.t.Errorf("the prompt is %v", prompt)
	}
	agent := call("deploy_headless_agent", fmt.Sprint("task_id=", task))["agent_id"]
	for ended := false; !ended; {
		output := call("get_agent_output", fmt.Sprint("agent_id=", agent), "wait_seconds=10", "from=-1")
		ended = output["status"] == "completed"
		if status := output["status"]; status == "failed" || status == "killed" {
			i.t.Fatalf("the agent has %v: %v", status, output["reason"])
		}
	}
	call("report_agent_finding", fmt.Sprint("task_id=", task), fmt.Sprint("agent_id=", agent), "message=The washer is worn", "severity=high")
	if status := call("get_real_task_status", fmt.Sprint("task_id=", task)); status["status"] != "completed" || status["findings_total"] != 1.0 {
		i.t.Errorf("the task is %v", status)
	}
	call("list_real_tasks", "limit=5")
	call("get_context", "conversation=s1", "view=codex")
	call("append_message", "conversation=s1", "role=user", "content=Thank you")
	fact := call("remember", "text=The plumber comes on Fridays")["id"]
	recall := func() string { return fmt.Sprint(call("recall", "query=When does the plumber come?")["facts"]) }
	if facts := recall(); !strings.Contains(facts, "The plumber comes on Fridays") {
		i.t.Errorf("the facts are %v", facts)
	}
	call("forget", fmt.Sprint("fact=", fact))
	if facts := recall(); strings.Contains(facts, "plumber") {
		i.t.Errorf("what was forgotten is recalled: %v", facts)
	}
	called["kill_real_agent"] = true
	var refused struct {
		StructuredContent struct{ Error struct{ Type string } }
	}
	i.refused(&refused, "--method", "tools/call", "--tool-name", "kill_real_agent", "--tool-arg", fmt.Sprint("agent_id=", agent))
	if refused.StructuredContent.Error.Type != "not_running" {
		i.t.Errorf("the end of an agent that has ended is %+v", refused)
	}
	return called
}

// refused runs a call whose result is an error, for which the inspector's exit code may tell.
func (i inspector) refused(into any, arguments ...string) {
	i.t.Helper()
	script := npmFile(i.t, "@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
	command := exec.CommandContext(i.t.Context(), newNode(i.t), append(append([]string{script, "--cli"}, i.target...), arguments...)...)
	command.Dir, command.Env = i.dir, []string{"HOME=" + i.dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	said, _ := command.Output() // its words count
	if err := json.Unmarshal(said, into); err != nil {
		i.t.Fatalf("%v: %v\n%s", arguments, err, said)
	}
}

// The same over pipes, with the program started by the inspector.
func TestMCPInspectorOverPipes(t *testing.T) {
	t.Parallel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	i := inspector{t, []string{path, "mcp"}, dir}
	task := i.call("create_real_task", "description=Mend the tap")["task_id"]
	if shown := i.call("get_real_task_status", fmt.Sprint("task_id=", task)); shown["status"] != "queued" {
		t.Errorf("the next program shows %v", shown)
	}
}
