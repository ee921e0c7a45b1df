package task_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/task"
)

func thread(texts ...string) []task.Message {
	var messages []task.Message
	for i, text := range texts {
		role := task.User
		if i%2 == 1 {
			role = task.Assistant
		}
		messages = append(messages, task.Message{Role: role, Content: text})
	}
	return messages
}

func contents(messages []task.Message) []string {
	var texts []string
	for _, message := range messages {
		texts = append(texts, message.Content)
	}
	return texts
}

func TestOnlyTheThreadThatMatters(t *testing.T) {
	messages := thread(
		"Hello, can you help me?", "Sure.",
		"What is the weather in Paris?", "Rainy, 12 degrees.",
		"Login fails: the JWT token expires too early.", "Give them an hour more.",
		"Order a pizza.", "I cannot do that.",
		"Thanks for now.", "You are welcome.",
	)
	kept, gaps := task.Relevant(messages, "Fix the lifetime of JWT tokens at login", 0.4, 0)
	want := []string{"Hello, can you help me?", "Login fails: the JWT token expires too early.", "Give them an hour more.", "You are welcome."}
	for _, text := range want {
		if !slices.Contains(contents(kept), text) {
			t.Errorf("%q is left out", text)
		}
	}
	for _, text := range []string{"What is the weather in Paris?", "I cannot do that."} {
		if slices.Contains(contents(kept), text) {
			t.Errorf("%q is kept", text)
		}
	}
	left := 0
	for _, gap := range gaps {
		left += gap.LeftOut
	}
	if left != len(messages)-len(kept) || left == 0 {
		t.Errorf("%+v tell of %d messages, %d are left out", gaps, left, len(messages)-len(kept))
	}
}

func TestRelevanceInChinese(t *testing.T) {
	messages := thread("你好", "您好", "今天天气怎么样", "下雨", "登录错误需要修复", "好的", "录登复修啊", "不行", "谢谢", "再见")
	kept, _ := task.Relevant(messages, "修复登录问题", 0.6, 0)
	if want := []string{"你好", "登录错误需要修复", "再见"}; !slices.Equal(contents(kept), want) {
		t.Errorf("got %q, want %q", contents(kept), want)
	}
}

func TestAtTheEdgesOfRelevance(t *testing.T) {
	messages := thread("one apple", "two pears", "three apples", "four plums")
	for name, test := range map[string]struct {
		description string
		cutoff      float64
		most        int
		want        []string
		gaps        []task.Gap
	}{
		"all":              {"apple", 0, 0, []string{"one apple", "two pears", "three apples", "four plums"}, nil},
		"only the best":    {"plums", 1, 0, []string{"one apple", "four plums"}, []task.Gap{{Before: 1, LeftOut: 2}}},
		"nothing is known": {"zebra", 0.9, 0, []string{"one apple", "two pears", "three apples", "four plums"}, nil},
		"no description":   {"", 0.9, 3, []string{"one apple", "three apples", "four plums"}, []task.Gap{{Before: 1, LeftOut: 1}}},
		"a limit":          {"pears", 0, 3, []string{"one apple", "two pears", "four plums"}, []task.Gap{{Before: 2, LeftOut: 1}}},
		"a limit of one":   {"pears", 0, 1, []string{"one apple", "four plums"}, []task.Gap{{Before: 1, LeftOut: 2}}},
	} {
		kept, gaps := task.Relevant(messages, test.description, test.cutoff, test.most)
		if !slices.Equal(contents(kept), test.want) || !reflect.DeepEqual(gaps, test.gaps) {
			t.Errorf("%s: got %q and %v, want %q and %v", name, contents(kept), gaps, test.want, test.gaps)
		}
	}
	if kept, gaps := task.Relevant(nil, "a", 0.5, 5); kept != nil || gaps != nil {
		t.Error("of nothing something is kept")
	}
}

// What is kept stands in its order, with the first user message and the newest, the gaps tell exactly of the rest,
// and a higher cut-off keeps nothing that a lower one does not.
func TestLawsOfRelevance(t *testing.T) {
	words := strings.Fields("login token error fix index query page user cache the a of to weather pizza")
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 5))
		text := func() string {
			var b strings.Builder
			for range random.IntN(12) {
				b.WriteString(words[random.IntN(len(words))] + " ")
			}
			return b.String()
		}
		var messages []task.Message
		for i := range 1 + random.IntN(40) {
			role := []task.Role{task.User, task.Assistant}[random.IntN(2)]
			messages = append(messages, task.Message{Role: role, Content: fmt.Sprint(i, " ", text())})
		}
		description, cutoff, most := text(), random.Float64(), random.IntN(20)
		kept, gaps := task.Relevant(messages, description, cutoff, most)
		relevanceLaws(t, messages, kept, gaps, most)
		if wider, _ := task.Relevant(messages, description, cutoff/2, 0); most == 0 {
			for _, message := range kept {
				if !slices.Contains(contents(wider), message.Content) {
					t.Errorf("a lower cut-off leaves %q out", message.Content)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func relevanceLaws(t *testing.T, messages, kept []task.Message, gaps []task.Gap, most int) {
	t.Helper()
	if most > 1 && len(kept) > most {
		t.Errorf("%d are kept, at most %d are allowed", len(kept), most)
	}
	at, given := 0, contents(messages)
	for i, message := range kept {
		if len(gaps) > 0 && gaps[0].Before == i {
			at += gaps[0].LeftOut
			gaps = gaps[1:]
		}
		if at >= len(given) || given[at] != message.Content {
			t.Errorf("message %d is %q; by the gaps it is number %d of %q", i, message.Content, at, given)
			return
		}
		at++
	}
	if at != len(given) || len(gaps) > 0 {
		t.Errorf("%d of %d messages are accounted for", at, len(given))
	}
	isUser := func(m task.Message) bool { return m.Role == task.User }
	if first := slices.IndexFunc(messages, isUser); first >= 0 && !slices.Contains(contents(kept), given[first]) {
		t.Error("the first user message is left out")
	}
}

func TestRelevanceOfARequest(t *testing.T) {
	var messages []map[string]string
	for i := range 80 {
		messages = append(messages, said("user", fmt.Sprintf("Tell me about the weather on day %d.", i)))
	}
	messages[20]["content"] = "The login page throws an error."
	asked, cutoff := request(t, messages), 0.8
	asked.Description, asked.Relevance = "Fix the login page", &cutoff
	made, warnings, err := task.Validate(asked, now, task.Limits{})
	if err != nil || len(warnings) != 1 || warnings[0].Message != "conversation_history has 80 messages, 77 of them left out as less relevant" {
		t.Fatalf("%v, %v", warnings, err)
	}
	prompt := task.Prompt(*made)
	for _, want := range []string{"[…] 19 messages left out\n\n[2] 👤 User (10:00:00):\n    The login page throws an error.\n\n[…] 58 messages left out\n\n[3] ", "3 messages, 77 left out"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("want %q in\n%s", want, prompt)
		}
	}
	readsBack(t, *made)
}
