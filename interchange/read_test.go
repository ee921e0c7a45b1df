package interchange

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// seen reads a source and writes a line for each conversation (place: number of entries) or error.
func seen(source io.Reader, o Options) []string {
	var found []string
	for document, err := range Read("f", source, o) {
		if err != nil {
			found = append(found, fmt.Sprintf("%s! %v", document.Source, err))
			continue
		}
		found = append(found, fmt.Sprintf("%s: %d", document.Source, len(document.Entries)))
	}
	return found
}

const (
	one    = `{"id":"one","messages":[{"role":"user","content":"hi"}]}`
	two    = `{"id":"two","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}`
	pretty = "{\n\"id\": \"one\",\n\"messages\": [\n{\n\"role\": \"user\",\n\"content\": \"hi\"\n}\n]\n}\n"
)

func TestReadFindsTheConversations(t *testing.T) {
	tests := []struct {
		name, source string
		want         []string // an element that ends with ! is a pattern of an error
	}{
		{"one object", one, []string{"f, line 1: 1"}},
		{"JSON lines", one + "\n" + two + "\n", []string{"f, line 1: 1", "f, line 2: 2"}},
		{"empty lines, carriage returns, spaces", "\r\n " + one + "\r\n\r\n\t" + two, []string{"f, line 2: 1", "f, line 4: 2"}},
		{"record separators", "\x1e" + one + "\n\x1e" + two + "\n", []string{"f, line 1: 1", "f, line 2: 2"}},
		{"values without line ends", one + two + one, []string{"f, line 1: 1", "f, line 1: 2", "f, line 1: 1"}},
		{"byte order mark", "\xef\xbb\xbf" + one, []string{"f, line 1: 1"}},
		{"over several lines", pretty + pretty, []string{"f, line 1: 1", "f, line 10: 1"}},
		{"over several lines without indents", "{\"messages\":[\n" + hi + "\n,\n" + hi + ",\n" + done + "\n]}\n" + one, []string{"f, line 1: 3", "f, line 7: 1"}},
		{"list of messages", "[\n" + hi + ",\n" + done + "\n]\n", []string{"f, line 1: 2"}},
		{"list of conversations", "[" + one + ",\n" + two + "]", []string{"f, element 0 (line 1): 1", "f, element 1 (line 2): 2"}},
		{"list of lists", "[[" + hi + "],[" + hi + "," + done + "]]", []string{"f, element 0 (line 1): 1", "f, element 1 (line 1): 2"}},
		{"lines of lists", "[" + hi + "]\n[" + hi + "," + done + "]\n", []string{"f, line 1: 1", "f, line 2: 2"}},
		{"a conversation without messages", `{"messages":[]}`, []string{"f, line 1: 0"}},
		{"nothing", " \n", []string{"f! .*the file is empty"}},
		{"empty list", "[]", []string{"f, line 1! .*has no messages"}},
		{"UTF-16", "\xff\xfe{\x00", []string{"f! .*UTF-16"}},
		{"a broken line between good ones", one + "\n" + `{"messages":[{"role":"us` + "\n" + two, []string{"f, line 1: 1", "f, line 2! .*truncated inside a string at the end of line 2", "f, line 3: 2"}},
		{"a broken line at the beginning", `{"messages":[{"role":"user"` + "\n" + one + "\n" + two, []string{"f, line 1! .*truncated at the end of line 1", "f, line 2: 1", "f, line 3: 2"}},
		{"a line cut behind a comma", one + "\n" + `{"messages":[` + hi + ",\n" + two, []string{"f, line 1: 1", "f, line 2! .*truncated at the end of line 2", "f, line 3: 2"}},
		{"a broken line of lists", "[" + hi + "]\n[" + hi + `,{"role"` + "\n[" + hi + "]\n", []string{"f, line 1: 1", "f, line 2! .*"}},
		{"a word", "hello\n" + one, []string{`f, line 1! .*broken JSON`, "f, line 2: 1"}},
		{"wrong brackets", `{"messages":[}]` + "\n" + one, []string{"f, line 1! .*broken JSON", "f, line 2: 1"}},
		{"a value of the wrong type", `"x"` + "\n17\n" + one, []string{"f, line 1! .*must be a JSON object or list", "f, line 2! .*must be a JSON object or list", "f, line 3: 1"}},
		{"cut off at the end", one + "\n" + two[:30], []string{"f, line 1: 1", "f, line 2! .*truncated .*end of the file"}},
		{"list cut off", "[" + one + "," + two[:30], []string{"f, element 0 (line 1): 1", "f, element 1! .*truncated .*end of the file"}},
		{"a bad element of a list of conversations", "[" + one + `,{"messages":1},` + two + "]", []string{"f, element 0 (line 1): 1", "f, element 1 (line 1)! .*field messages must be a list of messages, not a number", "f, element 2 (line 1): 2"}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{
				"whole": strings.NewReader(c.source), "byte by byte": iotest.OneByteReader(strings.NewReader(c.source)), "packed": bytes.NewReader(pack(t, c.source)),
			} {
				found := seen(in, Options{})
				if len(found) != len(c.want) {
					t.Fatalf("%s: %q instead of %q", name, found, c.want)
				}
				for i, want := range c.want {
					place, pattern, isError := strings.Cut(want, "! ")
					ok := found[i] == want
					if isError {
						ok = strings.HasPrefix(found[i], place+"! ") && regexp.MustCompile(pattern).MatchString(found[i])
					}
					if !ok {
						t.Errorf("%s: %q instead of %q", name, found[i], want)
					}
				}
			}
		})
	}
}

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestErrorsNameIndexAndField(t *testing.T) {
	tests := []struct{ list, format, want string }{
		{`[` + hi + `,3]`, "", "message 1: must be an object, not a number"},
		{`[{"content":"x"}]`, "", "message 0: field role must be a string, not nothing"},
		{`[{"role":7}]`, "", "message 0: field role must be a string, not a number"},
		{`[{"role":"user","content":{"a":1}}]`, "", "message 0: field content must be a string, null or a list of parts, not an object"},
		{`[{"role":"user","content":[1]}]`, "", "message 0: field content, part 0, must be an object or a string, not a number"},
		{`[{"role":"user","content":"x","name":[]}]`, "", "message 0: field name must be a string, not a list"},
		{`[{"role":"tool","content":"x","tool_call_id":true}]`, "", "message 0: field tool_call_id must be a string, not true or false"},
		{`[{"role":"assistant","tool_calls":{}}]`, "", "message 0: field tool_calls must be a list, not an object"},
		{`[{"role":"assistant","tool_calls":["x"]}]`, "", "message 0: field tool_calls, call 0: it must be an object, not a string"},
		{`[{"role":"assistant","tool_calls":[{"id":1}]}]`, "", "call 0: field id must be a string, not a number"},
		{`[{"role":"assistant","tool_calls":[{"function":"f"}]}]`, "", "call 0: its function must be an object, not a string"},
		{`[{"role":"assistant","tool_calls":[{"function":{"name":1}}]}]`, "", "call 0: its name must be a string, not a number"},
		{`[{"role":"user","content":7}]`, FormatAnthropic, "message 0: field content must be a string or a list of blocks, not a number"},
		{`[{"role":"user","content":[{"text":"x"}]}]`, FormatAnthropic, "message 0: field content, block 0, has no type"},
		{`[{"role":"user","content":["x"]}]`, FormatAnthropic, "block 0, must be an object, not a string"},
		{`[{"role":"user","content":[{"type":"tool_result","tool_use_id":1}]}]`, FormatAnthropic, "block 0: field tool_use_id must be a string, not a number"},
		{`{}`, "", "messages must be a JSON list"},
		{`[` + hi, "", "truncated"},
		{`[` + hi + `]`, "word", `unknown format "word": use one of openai,`},
		{`[` + hi + `]`, FormatContinuo, "a file of lines"},
		{strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "", "nested 2000 levels deep"},
	}
	for _, c := range tests {
		_, err := Messages(json.RawMessage(c.list), c.format)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: the error is %v, without %q", c.list, err, c.want)
		}
		if !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%.80s: the error %v is not ErrInvalid", c.list, err)
		}
	}
}

// A conversation whose user cannot be told is not imported as nobody's.
func TestAUserThatCannotBe(t *testing.T) {
	for document, err := range Read("chats.json", strings.NewReader(`{"user_id":"ada\u0000","messages":[`+hi+`]}`), Options{}) {
		if !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), `the user_id "ada\x00" has control characters: correct it in the source`) {
			t.Errorf("%+v, %v", document.Conversation, err)
		}
	}
}

func TestErrorsNameTheConversation(t *testing.T) {
	found := seen(strings.NewReader(`{"id":"mine","messages":[7]}`), Options{})
	if len(found) != 1 || !strings.Contains(found[0], `read f, line 1: conversation "mine": invalid input: message 0`) {
		t.Errorf("found %q", found)
	}
}

func TestSizeLimit(t *testing.T) {
	long := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 500) + `"}]}`
	found := seen(strings.NewReader(one+"\n"+long+"\n"+two+"\n["+hi+","+long+"]"), Options{MaxBytes: 200})
	if len(found) != 4 || found[0] != "f, line 1: 1" || !strings.Contains(found[1], "more than the limit of 200") ||
		found[2] != "f, line 3: 2" || !strings.Contains(found[3], "more than the limit of 200") {
		t.Errorf("found %q", found)
	}
}

func TestReaderFailure(t *testing.T) {
	broken := errors.New("disk")
	var last error
	for _, err := range Read("f", io.MultiReader(strings.NewReader(one+"\n"+two[:20]), iotest.ErrReader(broken)), Options{}) {
		last = err
	}
	if !errors.Is(last, broken) || errors.Is(last, continuo.ErrInvalid) {
		t.Errorf("the last error is %v", last)
	}
	packed := pack(t, strings.Repeat(one+"\n", 1000))
	last = nil
	for _, err := range Read("f", bytes.NewReader(packed[:len(packed)/2]), Options{}) {
		last = err
	}
	if last == nil {
		t.Error("a gzip file that is cut gives no error")
	}
}

func TestReadStopsWithItsConsumer(t *testing.T) {
	in := &counter{}
	for range Read("f", in, Options{}) {
		break
	}
	if in.read > 1<<20 {
		t.Errorf("%d bytes were read for one conversation", in.read)
	}
}

// counter is an endless file of conversations that counts what was read of it.
type counter struct{ read int }

func (c *counter) Read(p []byte) (int, error) {
	n := 0
	for n+len(one)+1 <= len(p) {
		n += copy(p[n:], one+"\n")
	}
	c.read += n
	return n, nil
}

func TestAKeyIsOfTheSourcesIDAndNeverOfTheContent(t *testing.T) {
	message := `"messages":[{"role":"user","content":"hi"}]`
	for source, want := range map[string]string{
		`[{"role":"user","content":"hi"}]`:                               "",
		`{` + message + `}`:                                              "",
		`{"id":"s1",` + message + `}`:                                    "s1",
		`{"id":17,` + message + `}`:                                      "17",
		`{"id":"row 9","session_id":"legacy-9",` + message + `}`:         "legacy-9",
		`{"conversation_id":"c","id":"x",` + message + `}`:               "c",
		`{"id":"my session/1",` + message + `}`:                          "my-session-1-83a0c6ee2d04",
		`{"id":"conv_0199c5f0d1a270008000000000000000",` + message + `}`: "0199c5f0d1a270008000000000000000-e8b4e2b9b45f",
	} {
		document := readOne(t, []byte(source), Options{})
		key := document.Conversation.Key
		if strings.Contains(want, "-83a") || strings.Contains(want, "-e8b") {
			if len(key) != len(want) || key[:len(want)-12] != want[:len(want)-12] || document.SourceID == "" {
				t.Errorf("%s: the key is %q, repairs %v", source, key, document.Repairs)
			}
			continue
		}
		if key != want || len(document.Repairs) != 0 {
			t.Errorf("%s: the key is %q, want %q; repairs %v", source, key, want, document.Repairs)
		}
	}
	a, b := readOne(t, []byte(`{"id":"a b",`+message+`}`), Options{}), readOne(t, []byte(`{"id":"a/b",`+message+`}`), Options{})
	if a.Conversation.Key == b.Conversation.Key {
		t.Errorf("two ids have the key %s", a.Conversation.Key)
	}
}

func TestAChatsFileNamesItsTelegramChat(t *testing.T) {
	whole := `{"metadata":{"chat_id":-100678},"conversation":` + pipelineMessages + `}`
	for _, source := range []string{whole, pipelineMessages, `[{"role":"user","content":"hi"}]`} {
		for document, err := range Read("old/chat_-100678.json", strings.NewReader(source), Options{}) {
			if err != nil || document.Conversation.Key != "telegram:-100678" {
				t.Errorf("the key is %q (%v)", document.Conversation.Key, err)
			}
		}
	}
}

func TestTimesAreReadFromNumbers(t *testing.T) {
	document := readOne(t, []byte(`{"createdAt":1735689600,"messages":[{"role":"user","content":"a","createdAt":1735689600000},{"role":"assistant","content":"b"},{"role":"user","content":"c","createdAt":1735689660}]}`), Options{})
	var got []string
	for _, entry := range document.Entries {
		got = append(got, entry.CreatedAt.Format(time.RFC3339))
	}
	equal(t, "times", got, []string{"2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"})
	equal(t, "the conversation's", []string{document.Conversation.CreatedAt.Format(time.RFC3339)}, []string{"2025-01-01T00:00:00Z"})
}

func TestFormatCanBeForced(t *testing.T) {
	source := `{"messages":[{"role":"user","content":"x","createdAt":"2025-01-01"}]}`
	for _, format := range []string{"", FormatOpenAI, FormatOpenAIJSONL, FormatAnthropic, FormatPipeline, FormatOpenAILegacy} {
		want := format
		switch format {
		case "":
			want = FormatUnified
		case FormatOpenAIJSONL:
			want = FormatOpenAI
		}
		document := readOne(t, []byte(source), Options{Format: format})
		if document.Format != want {
			t.Errorf("with the format %q it was read as %s", format, document.Format)
		}
		checkLawsOf(t, document, []byte(source))
	}
	if found := seen(strings.NewReader(one), Options{Format: "yaml"}); len(found) != 1 || !strings.Contains(found[0], "unknown format") {
		t.Errorf("an unknown format gives %q", found)
	}
	if found := seen(strings.NewReader(one), Options{Format: FormatContinuo}); len(found) != 1 || !strings.Contains(found[0], "not an export of the format continuo") {
		t.Errorf("another form under our own format gives %q", found)
	}
}

func TestConversationFieldsAreKept(t *testing.T) {
	document := readOne(t, []byte(`{"title":"T","qa":[{"evidence":[1.0]}],"messages":[],"tools":[]}`), Options{})
	want := `{"source":{"format":"openai","list":"messages","fields":{"title":"T","qa":[{"evidence":[1.0]}],"tools":[]}}}`
	if got := string(document.Conversation.Metadata); got != want || document.Conversation.Title != "T" {
		t.Errorf("title %q, metadata %s instead of %s", document.Conversation.Title, got, want)
	}
	bare := readOne(t, []byte("["+hi+"]"), Options{})
	if got := string(bare.Conversation.Metadata); got != `{"source":{"format":"openai"}}` {
		t.Errorf("the metadata of a bare list are %s", got)
	}
}
