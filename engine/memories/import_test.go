package memories_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

var nobody = memories.Owner{}

// say appends messages of a user to a new conversation.
func say(t *testing.T, log *continuo.Log, user string, texts ...string) continuo.Conversation {
	t.Helper()
	c, err := log.Create(t.Context(), continuo.Conversation{ProjectID: "p", UserID: user})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if _, err := log.Append(t.Context(), c.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text(text)}}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func exportOf(t *testing.T, m *memories.Memories, owner memories.Owner) memories.Export {
	t.Helper()
	export, err := m.Export(t.Context(), scope, owner)
	if err != nil {
		t.Fatal(err)
	}
	return export
}

// fileOf is an export as a file that was written and read.
func fileOf(t *testing.T, export memories.Export) *memories.File {
	t.Helper()
	data, err := json.Marshal(export)
	if err != nil {
		t.Fatal(err)
	}
	file, err := memories.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func take(t *testing.T, m *memories.Memories, file *memories.File) memories.ImportedFacts {
	t.Helper()
	done, err := m.Import(t.Context(), scope, nobody, file, false)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// elsewhere is a memory in another store: of messages, of statements and of a pattern, one of which supersedes another one.
func elsewhere(t *testing.T) (*continuo.Log, *memories.Memories) {
	t.Helper()
	log, m := newMemories(storetest.NewMemory())
	for _, day := range []string{"Monday", "Tuesday", "Friday"} {
		say(t, log, "", "I prefer tea on "+day+".", "Always answer shortly on "+day+".", "Answer shortly, please, on "+day+".")
	}
	say(t, log, "", "I live in Oslo.", "I moved to Bergen.")
	if derived, err := m.Derive(t.Context(), scope, nobody); err != nil || len(derived) == 0 {
		t.Fatalf("derived %+v: %v", derived, err)
	}
	stated, err := m.Remember(t.Context(), scope, memories.Statement{Text: "We release on Mondays", Kind: continuo.FactDecision})
	if err == nil {
		_, err = m.Correct(t.Context(), scope, stated.ID, memories.Statement{Text: "We release on Tuesdays"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return log, m
}

// same compares facts as they are in two memories, without what names their places.
func same(t *testing.T, got, want memories.Export) {
	t.Helper()
	if len(got.Facts) != len(want.Facts) {
		t.Fatalf("%d facts, want %d: %+v", len(got.Facts), len(want.Facts), got.Facts)
	}
	byID := func(facts []memories.Fact, id int64) string {
		for i := range facts {
			if facts[i].ID == id {
				return facts[i].Text
			}
		}
		return ""
	}
	for i := range got.Facts {
		g, w := &got.Facts[i], &want.Facts[i]
		isSame := g.Text == w.Text && g.Kind == w.Kind && g.Subject == w.Subject && g.Attribute == w.Attribute && g.By == w.By && g.Confidence == w.Confidence &&
			g.Derived == w.Derived && g.ValidFrom.Equal(w.ValidFrom) && g.ValidTo.Equal(w.ValidTo) &&
			byID(got.Facts, g.SupersededBy) == byID(want.Facts, w.SupersededBy) && len(g.Supersedes) == len(w.Supersedes)
		if !isSame {
			t.Errorf("fact %d is %+v, want %+v", i, *g, *w)
		}
	}
	if got.Profile != want.Profile {
		t.Errorf("the profile is\n%s\nwant\n%s", got.Profile, want.Profile)
	}
}

// TestAMemoryIsTakenToAnotherStore: all facts, with their times, order and patterns; once; nothing that was forgotten here; and back
// home it adds nothing.
func TestAMemoryIsTakenToAnotherStore(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		_, home := elsewhere(t)
		export := exportOf(t, home, nobody)
		_, m := newMemories(store)
		file := fileOf(t, export)
		if done := take(t, m, file); done.Added != len(export.Facts) || len(done.LeftOut) > 0 {
			t.Fatalf("the import says %+v of %d facts", done, len(export.Facts))
		}
		taken := exportOf(t, m, nobody)
		same(t, taken, export)
		for i := range taken.Facts {
			if origin := taken.Facts[i].Imported; origin == nil || !origin.CreatedAt.Equal(export.Facts[i].CreatedAt) || origin.Sources[0] != export.Facts[i].Sources[0] {
				t.Errorf("the origin is %+v", origin)
			}
		}
		if done := take(t, m, file); done.Added > 0 || done.Known != len(export.Facts) {
			t.Errorf("a second import says %+v", done)
		}
		if done := take(t, home, fileOf(t, taken)); done.Added > 0 || done.Known != len(export.Facts) {
			t.Errorf("back home the import says %+v", done)
		}
		gone := taken.Facts[0]
		if err := m.Forget(t.Context(), scope, nobody, gone.ID, false); err != nil {
			t.Fatal(err)
		}
		done := take(t, m, file)
		if done.Added > 0 || len(done.LeftOut) == 0 || done.LeftOut[0].ID != export.Facts[0].ID || done.LeftOut[0].Reason != "removed" {
			t.Errorf("after a fact was forgotten the import says %+v", done)
		}
		if data, _ := json.Marshal(exportOf(t, m, nobody)); strings.Contains(string(data), gone.Text) {
			t.Errorf("the memory still has %q", gone.Text)
		}
	})
}

// TestSourcesThatAreHereAreLinked: in a copy of the conversations, facts have the sources that they had, and go with them. A fact whose
// words are not there is refused, and nothing is added.
func TestSourcesThatAreHereAreLinked(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		log := continuo.NewLog(store, continuo.LogOptions{})
		m := memories.New(log, nil, nil, nil, memories.Options{}) // which extracts nothing
		c := say(t, log, "", "I live in Oslo.", "Say hello.")
		file := func(seq int64, quote string) *memories.File {
			fact := memories.Fact{
				ID: 7, Text: "I live in Oslo", Kind: continuo.FactIdentity, Subject: "user", ValidFrom: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), Confidence: 0.9, By: "rules",
				Sources: []memories.Source{{ConversationID: c.ID, Seq: seq, Quote: quote}},
			}
			return fileOf(t, memories.Export{ExportHead: memories.ExportHead{Continuo: "memory", Version: 1, ProjectID: "other"}, Facts: []memories.Fact{fact}})
		}
		_, err := m.Import(t.Context(), scope, nobody, file(2, "I live in Oslo"), false)
		var wrong *memories.FileError
		if !errors.As(err, &wrong) || wrong.Line != 1 || len(exportOf(t, m, nobody).Facts) > 0 {
			t.Fatalf("a quote that does not stand in its source: %v", err)
		}
		if done := take(t, m, file(1, "I live in Oslo")); done.Added != 1 {
			t.Fatalf("the import says %+v", done)
		}
		taken := exportOf(t, m, nobody).Facts
		if len(taken) != 1 || taken[0].Imported != nil || taken[0].Sources[0].ConversationID != c.ID {
			t.Fatalf("the memory has %+v", taken)
		}
		now, err := log.Conversation(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Redact(t.Context(), now, 1, 1, ""); err != nil {
			t.Fatal(err)
		}
		if done := take(t, m, file(1, "I live in Oslo")); done.Added > 0 || len(done.LeftOut) != 1 || len(exportOf(t, m, nobody).Facts) > 0 {
			t.Errorf("after the redaction the import says %+v", done)
		}
	})
}

// TestTheMessagesOfAnotherUserAreNotTaken also while they are archived, whoever's memory may be taken in.
func TestTheMessagesOfAnotherUserAreNotTaken(t *testing.T) {
	store := storetest.NewMemory()
	log, m := newMemories(store)
	c := say(t, log, "ada", "I live in Oslo.")
	if err := m.Extract(t.Context(), scope, memories.Owner{UserID: "ada"}); err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, exportOf(t, m, memories.Owner{UserID: "ada"}))
	for _, isArchived := range []bool{false, true} {
		if isArchived {
			if _, err := (maintenance.Archivist{Store: store, Objects: storetest.NewObjects()}).Archive(t.Context(), c.ID); err != nil {
				t.Fatal(err)
			}
		}
		done, err := m.Import(t.Context(), scope, nobody, file, true)
		if err != nil || done.Added > 0 || len(done.LeftOut) != 1 || done.LeftOut[0].Reason != "other_user" {
			t.Errorf("archived: %v, the import says %+v, %v", isArchived, done, err)
		}
	}
}

// TestFilesThatAreNoMemory are refused with the line.
func TestFilesThatAreNoMemory(t *testing.T) {
	const head = `{"continuo": "memory", "version": 1, "project_id": "p"}` + "\n"
	fact := func(change ...string) string {
		text := `{"id": 1, "text": "I live in Oslo", "kind": "identity", "subject": "user", "valid_from": "2024-01-02T03:04:05Z", "sources": [{"conversation_id": "c", "seq": 1, "quote": "I live in Oslo"}], "confidence": 1, "by": "person", "created_at": "2024-01-02T03:04:05Z"}`
		return strings.NewReplacer(change...).Replace(text)
	}
	second := fact(`"id": 1`, `"id": 2`)
	if file, err := memories.ReadFile([]byte(head + fact() + "\n\n" + second + "\n")); err != nil || len(file.Facts) != 2 || file.Facts[1].Line != 4 {
		t.Fatalf("a good file: %v", err)
	}
	for name, one := range map[string]struct {
		data, want string
	}{
		"nothing":                {"", "line 1: the file ends too early"},
		"a list":                 {"\n[1]", "line 2: it must be an object, not a list"},
		"a conversation":         {`{"continuo": "conversation", "version": 1}`, `line 1: this is no export of a memory: the field continuo is "conversation"`},
		"another version":        {`{"continuo": "memory", "version": 2}`, "line 1: the export has version 2"},
		"an unknown field":       {head + fact(`"by"`, `"admin": true, "by"`), `line 2: unknown field "admin"`},
		"a wrong type":           {head + fact() + "\n" + fact(`"id": 1`, `"id": "x"`), "line 3: field id must be a whole number, not a string"},
		"truncated":              {head + fact() + "\n" + second[:80], "line 3: the file ends too early"},
		"no JSON":                {head + fact() + "\nhello", "line 3: this is not valid JSON"},
		"the same id again":      {head + fact() + "\n" + fact(), "line 3: the id 1 of the fact does not follow 1"},
		"without a source":       {head + fact(`[{"conversation_id": "c", "seq": 1, "quote": "I live in Oslo"}]`, `[]`), "line 2: the fact has no source"},
		"without a quote":        {head + fact(`"quote": "I live in Oslo"`, `"quote": " "`), "line 2: the source c 1 has no quote"},
		"without a time":         {head + fact(`"valid_from": "2024-01-02T03:04:05Z", `, ""), "line 2: the fact has no valid_from"},
		"a foreign id":           {head + fact(`"by"`, `"supersedes": [5], "by"`), "line 2: the fact supersedes [5], which are no earlier facts"},
		"an unknown kind":        {head + fact(`"identity"`, `"rumour"`), "line 2: the kind of a fact"},
		"too long":               {head + fact(`"I live in Oslo", "kind"`, `"`+strings.Repeat("x", 2001)+`", "kind"`), "line 2: a fact has 1 to 2000 characters"},
		"no text":                {head + "\xff", "line 2: text is not valid UTF-8"},
		"two documents":          {`{"continuo": "memory", "version": 1, "facts": []}` + "\n{}", "line 2: the file has more than one export"},
		"a document's fact":      {"{\"continuo\": \"memory\",\n \"version\": 1,\n \"facts\": [\n" + fact() + ",\n" + fact() + "\n]}", "line 5: the id 1"},
		"deep":                   {head + strings.Repeat("[", 100_000), "line 2: this is not valid JSON"},
		"a time that is no time": {head + fact("2024-01-02T03:04:05Z", "yesterday"), `line 2: a time must be as in 2026-11-01T08:00:00Z, not "yesterday"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := memories.ReadFile([]byte(one.data))
			var wrong *memories.FileError
			if !errors.As(err, &wrong) || !errors.Is(err, continuo.ErrInvalid) || !strings.HasPrefix(err.Error(), one.want) {
				t.Errorf("says %v, want %s", err, one.want)
			}
		})
	}
}
