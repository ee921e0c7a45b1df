package crew_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/tool"
)

var update = flag.Bool("update", false, "rewrite the complaints beside testdata/bad")

// settings are what the crews in testdata may name.
var settings = crew.Known{
	Connectors: []string{"claude-code", "gemini"}, Models: []string{"demo", "large"}, Tools: []string{"fs.list", "fs.read", "web", "github.*"},
}

// crewFiles finds the crews of testdata.
func crewFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func readCrewFile(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The complaints about a file stand beside it, as a person would see them.
func TestBadCrewsAreRefusedWithTheseComplaints(t *testing.T) {
	for _, file := range crewFiles(t, "bad/*/*.yaml") {
		_, err := crew.Parse(filepath.Base(file), readCrewFile(t, file), settings)
		if problems := new(*crew.Problems); !errors.As(err, problems) || !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v, want *Problems", file, err)
			continue
		}
		golden := strings.TrimSuffix(file, ".yaml") + ".want"
		got := err.Error() + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(readCrewFile(t, golden)); got != want {
			t.Errorf("%s: complaints\n%swant\n%s", file, got, want)
		}
	}
}

func TestGoodCrewsAreRead(t *testing.T) {
	for _, file := range crewFiles(t, "good/*.yaml") {
		if c, err := crew.Parse(filepath.Base(file), readCrewFile(t, file), settings); err != nil {
			t.Errorf("%v", err)
		} else if !bytes.Equal(c.Text, readCrewFile(t, file)) {
			t.Errorf("%s: the text is not kept as it was read", file)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := crew.Parse("x.yaml", readCrewFile(t, "testdata/good/every_key.yaml"), settings)
	if err != nil {
		t.Fatal(err)
	}
	all := tool.Policy{Otherwise: tool.Allow}
	want := &crew.Crew{
		ID: "every-key_1", Name: "Every key", Description: "Uses each key at least once.", MaxRounds: 7, ReminderInterval: 3, Summarizer: "large",
		Text: c.Text,
		Roles: []crew.Role{{
			Name: "lead", DisplayName: "Łucja, the Lead", AgentType: "claude", Connector: "claude-code", SystemPrompt: "You lead.\n\nSay so.",
			IsModerator: true, View: crew.View{Kind: view.Delta}, Tools: all, Timeout: 90 * time.Second, BotToken: "LEAD_BOT_TOKEN", Line: 8,
		}, {
			Name: "second", DisplayName: "second", AgentType: "model", Connector: "model", Model: "large", SystemPrompt: "You help.", IsModerator: true,
			View:  crew.View{Kind: view.Window, Newest: 30, Chars: 20000, Tokens: 5000},
			Tools: tool.Policy{Allow: []string{"fs.read", "github.*"}, Otherwise: tool.Deny}, Line: 20,
		}, {
			Name: "third", DisplayName: "third", AgentType: "model", Connector: "model", SystemPrompt: "You help too.", View: crew.View{Chars: 1000},
			Tools: tool.Policy{Allow: []string{"fs.*"}, Ask: []string{"web"}, Deny: []string{"*.delete"}, Otherwise: tool.Deny}, Line: 27,
		}, {
			Name: "fourth", DisplayName: "fourth", AgentType: "model", Connector: "model", SystemPrompt: "Count.", View: crew.View{Kind: view.Summary}, Tools: all, Line: 32,
		}, {
			Name: "fifth", DisplayName: "fifth", AgentType: "model", Connector: "model", SystemPrompt: "Keep notes.", View: crew.View{Kind: view.Memory}, Tools: all, Line: 33,
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
	if c.Role("third") != &c.Roles[2] || c.Role("Third") != nil {
		t.Error("a role is found by its name and by nothing else")
	}
}

func TestDefaultsOfACrew(t *testing.T) {
	c, err := crew.Parse("some/where/short_one.yml", []byte("roles: [{role_name: a, system_prompt: A.}]\n"), crew.Known{})
	if err != nil {
		t.Fatal(err)
	}
	want := []crew.Role{{Name: "a", DisplayName: "a", AgentType: "model", Connector: "model", SystemPrompt: "A.", Tools: tool.Policy{Otherwise: tool.Allow}, Line: 1}}
	if c.ID != "short_one" || c.Name != "short_one" || c.MaxRounds != 10 || c.ReminderInterval != 0 || c.Summarizer != "" || !reflect.DeepEqual(c.Roles, want) {
		t.Errorf("%+v", c)
	}
}

// A cycle that has begun goes on where a connector is gone since: only what the settings define may be anything.
func TestAnyKnowsEveryName(t *testing.T) {
	text := "summarizer: gone\nroles:\n  - {role_name: a, system_prompt: A., connector: gone}\n  - {role_name: b, system_prompt: B., model: gone, tools: [gone]}\n"
	if c, err := crew.Parse("x.yaml", []byte(text), crew.Known{Any: true}); err != nil || c.Roles[0].Connector != "gone" || c.Roles[1].Model != "gone" || c.Summarizer != "gone" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := crew.Parse("x.yaml", []byte(text), crew.Known{}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("nothing is known, and the complaints are: %v", err)
	}
	if _, err := crew.Parse("x.yaml", []byte(text), crew.Known{Tools: []string{}}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("there are no tools, and the complaints are: %v", err)
	}
	if _, err := crew.Parse("x.yaml", []byte(text+"  - {role_name: a, system_prompt: A.}\n"), crew.Known{Any: true}); err == nil {
		t.Error("two roles have one name")
	}
}

// A token that was written into the file by mistake is in nobody's terminal or log.
func TestNoComplaintRepeatsAToken(t *testing.T) {
	_, err := crew.Parse("x.yaml", readCrewFile(t, "testdata/bad/structure/tokens.yaml"), settings)
	if err == nil || strings.Contains(strings.ToLower(err.Error()), "canary") || strings.Contains(err.Error(), "123456789") {
		t.Errorf("%v", err)
	}
}

// The limits are looked at where they lie.
func TestLimitsOfACrew(t *testing.T) {
	roles := func(n int) string {
		var text strings.Builder
		text.WriteString("roles:\n")
		for i := range n {
			fmt.Fprintf(&text, "  - {role_name: r%d, system_prompt: A.}\n", i)
		}
		return text.String()
	}
	prompt := func(n int) string { return "roles: [{role_name: a, system_prompt: " + strings.Repeat("x", n) + "}]" }
	display := func(n int) string {
		return "roles: [{role_name: a, system_prompt: A., display_name: " + strings.Repeat("ż", n) + "}]"
	}
	timeout := func(length string) string {
		return "roles: [{role_name: a, system_prompt: A., timeout: " + length + "}]"
	}
	for _, c := range []struct{ right, wrong string }{
		{roles(32), roles(33)}, {prompt(64 << 10), prompt(64<<10 + 1)}, {display(64), display(65)}, {timeout("1s"), timeout("999ms")}, {timeout("24h"), timeout("24h1ns")},
	} {
		if _, err := crew.Parse("x.yaml", []byte(c.right), settings); err != nil {
			t.Errorf("%.80s: %v", c.right, err)
		}
		if _, err := crew.Parse("x.yaml", []byte(c.wrong), settings); err == nil {
			t.Errorf("%.80s is not refused", c.wrong)
		}
	}
}

// workPerByte bounds what a file may allocate, in bytes for each byte of it.
const workPerByte = 4 << 10

func TestHostileCrewsAreRefusedWithLittleWork(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":      "roles: " + strings.Repeat("[", 100_000),
		"bytes":         "roles: [{role_name: a, system_prompt: " + strings.Repeat("x", 256<<10) + "}]",
		"keys":          strings.Repeat("k: 1\n", 15_000),
		"roles":         "roles:\n" + strings.Repeat("- {role_name: a, system_prompt: b}\n", 2_400),
		"names":         "roles:\n" + strings.Repeat("- {role_name: a, system_prompt: b}\n", 32),
		"a long name":   "roles: [{system_prompt: b, role_name: " + strings.Repeat("a", 100_000) + "}]",
		"a long kind":   "roles: [{system_prompt: b, role_name: a, view: " + strings.Repeat("a", 100_000) + "}]",
		"a long label":  "roles: [{system_prompt: b, role_name: a, display_name: " + strings.Repeat("(", 100_000) + "}]",
		"a long time":   "roles: [{system_prompt: b, role_name: a, timeout: " + strings.Repeat("1s", 100_000) + "}]",
		"a long token":  "roles: [{system_prompt: b, role_name: a, bot_token: \"${" + strings.Repeat("A", 100_000) + "}\"}]",
		"many patterns": "roles: [{system_prompt: b, role_name: a, tools: [" + strings.Repeat("' ',", 10_000) + "]}]",
	} {
		var err error
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = crew.Parse("hostile.yaml", []byte(text), settings)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, continuo.ErrInvalid) || len(err.Error()) > 20*600 {
			t.Errorf("%s: %.500v", name, err)
		}
		if work, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+workPerByte*len(text)); work > most {
			t.Errorf("%s: %d bytes are allocated for a file of %d, more than %d", name, work, len(text), most)
		}
	}
}

// FuzzParse reads any bytes as a crew. Whatever they are, Parse ends with a crew that a cycle can rely on, or with
// problems that are each on a line of their own and point into the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"good/*.yaml", "bad/*/*.yaml", "../*.yaml"} {
		for _, file := range crewFiles(f, pattern) {
			f.Add(readCrewFile(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		c, err := crew.Parse("f.yaml", text, settings)
		if err == nil {
			checkCrew(t, c)
			return
		}
		var problems *crew.Problems
		if !errors.As(err, &problems) || len(problems.List) == 0 || len(problems.List) > 20 {
			t.Fatalf("not problems: %v", err)
		}
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
		for _, problem := range problems.List {
			if problem.Line < 1 || problem.Line > lines || problem.Column < 1 || problem.Message == "" || strings.ContainsAny(problem.String(), "\n\r") {
				t.Fatalf("a problem that points nowhere in %d lines, or on several: %q", lines, problem)
			}
		}
	})
}

// checkCrew checks what a cycle relies on.
func checkCrew(t *testing.T, c *crew.Crew) {
	if c.ID == "" || c.Name == "" || len(c.Roles) == 0 || c.MaxRounds < 1 {
		t.Fatalf("a crew without names or roles: %+v", c)
	}
	seen := map[string]bool{}
	for _, role := range c.Roles {
		name, display := "name "+role.Name, "display "+strings.ToLower(role.DisplayName)
		if role.Name == "" || role.DisplayName == "" || role.AgentType == "" || role.Connector == "" || role.SystemPrompt == "" || role.Line < 1 || seen[name] || seen[display] {
			t.Fatalf("a role that cannot be told apart, or says nothing: %+v", role)
		}
		seen[name], seen[display] = true, true
		if strings.ContainsAny(role.DisplayName, "()[]:\r\n\t\u0085\u2028\u2029\u200b\ufeff") {
			t.Fatalf("a display name that is no label: %q", role.DisplayName)
		}
		if err := role.Tools.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// A reader of the page copies what stands there.
func TestTheCrewsInThePageAreCrews(t *testing.T) {
	page, err := os.ReadFile("../docs/crews.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		if !bytes.HasPrefix(block[1], []byte("roles:\n")) {
			continue // no crew, or a part of one
		}
		if _, err := crew.Parse("page.yaml", block[1], crew.Known{Connectors: []string{"gemini-cli"}}); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
	}
}
