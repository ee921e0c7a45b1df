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
		t.Errorf("%+v are of %d messages, %d are left out", gaps, left, len(messages)-len(kept))
	}
}

func TestRelevanceInChinese(t *testing.T) {
	messages := thread("你好", "您好", "今天天气怎么样", "下雨", "登录错误需要修复", "好的", "录登复修啊", "不行", "谢谢", "再见")
	kept, _ := task.Relevant(messages, "修复登录问题", 0.6, 0)
	if want := []string{"你好", "登录错误需要修复", "谢谢", "再见"}; !slices.Equal(contents(kept), want) {
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
		"only the best":    {"plums", 1, 0, []string{"one apple", "three apples", "four plums"}, []task.Gap{{Before: 1, LeftOut: 1}}},
		"nothing is known": {"zebra", 0.9, 0, []string{"one apple", "two pears", "three apples", "four plums"}, nil},
		"no description":   {"", 0.9, 3, []string{"one apple", "three apples", "four plums"}, []task.Gap{{Before: 1, LeftOut: 1}}},
		"a limit":          {"plums", 0, 3, []string{"one apple", "three apples", "four plums"}, []task.Gap{{Before: 1, LeftOut: 1}}},
		"a limit of one":   {"pears", 0, 1, []string{"one apple", "three apples", "four plums"}, []task.Gap{{Before: 1, LeftOut: 1}}},
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

// What is kept is in its order, with the first user message and the newest, the gaps cover exactly the rest,
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
	if most > 2 && len(kept) > most {
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
	for i := len(messages) - 1; i >= 0; i-- {
		if isUser(messages[i]) {
			if !slices.Contains(contents(kept), given[i]) {
				t.Error("the newest user message is left out")
			}
			return
		}
	}
}

// The user's last words are the order itself: they stay when an answer follows them, at any cut-off and limit.
func TestRelevanceKeepsTheNewestUserMessage(t *testing.T) {
	messages := thread("hi", "hello", "JWT tokens expire", "I see.", "Please do it before Monday and do not touch prod.", "OK, I create the task.")
	for _, most := range []int{0, 1, 2, 50} {
		kept, _ := task.Relevant(messages, "JWT token rotation", 1, most)
		if !slices.Contains(contents(kept), messages[4].Content) {
			t.Errorf("limit %d: got %q", most, contents(kept))
		}
	}
}

func TestRelevanceOfARequest(t *testing.T) {
	var messages []map[string]string
	for i := range 80 {
		messages = append(messages, message("user", fmt.Sprintf("Tell me about the weather on day %d.", i)))
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

// What the cut-off leaves out is distinguished from what the limit on the number leaves out.
func TestWarningsOfRelevance(t *testing.T) {
	const about, beside = "The login page throws error number %d.", "Order pizza number %d."
	for name, test := range map[string]struct {
		login, pizza int // messages, the pizzas last
		description  string
		cutoff       float64
		want         []string
		has          []string // some that are kept
	}{
		"nothing left out": {20, 20, "Fix the login page", 0, nil, []string{"login page throws error number 0", "pizza number 0"}},
		"by the cut-off":   {20, 40, "Fix the login page", 0.4, []string{"low: conversation_history has 60 messages, 39 of them left out as less relevant: Lower relevance to keep more of them"}, nil},
		"by the limit": {70, 1, "Fix the login page", 0.1, []string{
			"medium: conversation_history has 71 messages, 71 of them relevant enough, truncating to the most relevant 50: Consider a description that says more exactly what matters, by which they are ranked, or fewer messages",
		}, nil},
		"by both": {80, 20, "Fix the login page", 0.4, []string{
			"low: conversation_history has 100 messages, 19 of them left out as less relevant: Use the words of the messages that matter in the description",
			"medium: conversation_history has 100 messages, 81 of them relevant enough, truncating to the most relevant 50: Consider a description that says more exactly what matters, by which they are ranked, or fewer messages",
		}, []string{"login page throws error number 0", "pizza number 19"}},
		"the old one that matters": {1, 90, "Fix the login page", 0, []string{
			"medium: conversation_history has 91 messages, 91 of them relevant enough, truncating to the most relevant 50: Consider a description that says more exactly what matters, by which they are ranked, or fewer messages",
		}, []string{"login page throws error number 0"}},
		"nothing is known": {60, 0, "zebra", 0.9, []string{
			"medium: conversation_history has 60 messages, none with a word of the description, truncating to 50: the first of the user and the most recent: Use the words of the messages that matter in the description",
		}, []string{"number 0", "number 11", "number 59"}},
	} {
		var messages []map[string]string
		for i := range test.login {
			messages = append(messages, message("user", fmt.Sprintf(about, i)))
		}
		for i := range test.pizza {
			messages = append(messages, message("user", fmt.Sprintf(beside, i)))
		}
		asked := request(t, messages)
		asked.Description, asked.Relevance = test.description, &test.cutoff
		made, warnings, err := task.Validate(asked, now, task.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, warning := range warnings {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", warning.Severity, warning.Message, warning.Suggestion))
		}
		if !slices.Equal(lines, test.want) {
			t.Errorf("%s: the warnings are\n%s", name, strings.Join(lines, "\n"))
		}
		history := made.Context.ConversationHistory
		if len(history.Messages) > 50 || len(history.Messages) < 50 && len(test.want) > 0 && strings.HasPrefix(test.want[len(test.want)-1], "medium") {
			t.Errorf("%s: %d messages are kept", name, len(history.Messages))
		}
		for _, part := range test.has {
			if !slices.ContainsFunc(history.Messages, func(m task.Shaped) bool { return strings.HasSuffix(m.Content, part+".") }) {
				t.Errorf("%s: %q is left out", name, part)
			}
		}
	}
}
