package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

func testEntries(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 4)
	appendEntries(t, store, "a", 5, 5)
	appendEntries(t, store, "a", 6, 10)
	create(t, store, "b", 3) // another conversation's entries never show
	got, err := store.Conversation(t.Context(), "a")
	noError(t, err)
	want := conversation("a")
	want.LastSeq, want.UpdatedAt = 10, at(10)
	same(t, "the conversation after the appends", got, want)
	all := entries("a", 1, 10)
	for from := int64(0); from <= 11; from++ {
		for to := int64(0); to <= 12; to++ {
			for _, limit := range []int{1, 3, 10, 1000} {
				var want []continuo.Entry
				for _, e := range all {
					if e.Seq >= from && e.Seq <= to {
						want = append(want, e)
					}
				}
				query := continuo.EntryQuery{From: from, To: to, Limit: limit}
				got := read(t, store, "a", query)
				sameSeqs(t, query, got, want)
				query.Backward = true
				slices.Reverse(want)
				sameSeqs(t, query, read(t, store, "a", query), want)
			}
		}
	}
	sameEntries(t, "whole entries", readAll(t, store, "a"), all)
}

// sameSeqs expects the first entries of want, as many as the query allows.
func sameSeqs(t *testing.T, query continuo.EntryQuery, got, want []continuo.Entry) {
	t.Helper()
	want = want[:min(len(want), query.Limit)]
	if !slices.Equal(seqs(got), seqs(want)) {
		t.Errorf("%+v: got %v, want %v", query, seqs(got), seqs(want))
	}
}

func seqs(entries []continuo.Entry) []int64 {
	found := []int64{}
	for _, e := range entries {
		found = append(found, e.Seq)
	}
	return found
}

func testNarrowQueries(t *testing.T, opener Opener) {
	store := open(t, opener)
	made := entries("a", 1, 12) // users at 1, 4, 7, 10; results at 3, 6, 9, 12
	made[6].Hidden = true       // 7
	made[8].OutputRef = outputRef(3)
	c := conversation("a")
	c.LastSeq = 12
	noError(t, store.Create(t.Context(), c, made))
	create(t, store, "b", 12)
	for _, test := range []struct {
		query continuo.EntryQuery
		want  []int64
	}{
		{continuo.EntryQuery{From: 1, To: 12, Limit: 10, UsersOnly: true}, []int64{1, 4, 10}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 2, UsersOnly: true}, []int64{1, 4}},
		{continuo.EntryQuery{From: 1, To: 9, Limit: 1, UsersOnly: true, Backward: true}, []int64{4}},
		{continuo.EntryQuery{From: 2, To: 10, Limit: 10, UsersOnly: true, Backward: true}, []int64{10, 4}},
		{continuo.EntryQuery{From: 2, To: 3, Limit: 10, UsersOnly: true}, []int64{}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 10, OutputRef: outputRef(6)}, []int64{6}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 1, OutputRef: outputRef(3), Backward: true}, []int64{9}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 5, OutputRef: outputRef(3)}, []int64{3, 9}},
		{continuo.EntryQuery{From: 1, To: 8, Limit: 1, OutputRef: outputRef(3), Backward: true}, []int64{3}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 5, OutputRef: "@state/none"}, []int64{}},
		{continuo.EntryQuery{From: 1, To: 12, Limit: 5, OutputRef: outputRef(3), UsersOnly: true}, []int64{}},
	} {
		if got := seqs(read(t, store, "a", test.query)); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v, want %v", test.query, got, test.want)
		}
	}
	if err := second(store.Entries(t.Context(), "a", continuo.EntryQuery{From: 1, To: 12, Limit: 0})); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("a limit of 0 is refused with ErrInvalid, not %v", err)
	}
}

// testEntryBytes reads entries of many sizes under every bound that falls on, before or behind the end of one.
func testEntryBytes(t *testing.T, opener Opener) {
	store := open(t, opener)
	made := entries("a", 1, 9) // users at 1, 4, 7
	var size []int64
	for i := range made {
		made[i].Content = continuo.Text(strings.Repeat("\n\u00e4", 1+(i*i*i)%61*97))
		body, err := made[i].MarshalJSON()
		noError(t, err)
		size = append(size, int64(len(body)))
	}
	c := conversation("a")
	c.LastSeq = 9
	noError(t, store.Create(t.Context(), c, made))
	for _, query := range []continuo.EntryQuery{
		{From: 1, To: 9, Limit: 9},
		{From: 2, To: 8, Limit: 3},
		{From: 1, To: 9, Limit: 9, Backward: true},
		{From: 3, To: 9, Limit: 4, Backward: true},
		{From: 1, To: 9, Limit: 9, UsersOnly: true},
		{From: 1, To: 9, Limit: 1, UsersOnly: true, Backward: true},
	} {
		whole := read(t, store, "a", query)
		sum := int64(0)
		for i := range whole {
			before := sum
			sum += size[whole[i].Seq-1]
			for _, most := range []int64{sum - 1, sum, sum + 1} {
				query.MaxBytes = most
				want := whole[:i]
				if most >= sum {
					want = whole[:i+1] // no entry has one byte
				}
				found, err := store.Entries(t.Context(), "a", query)
				if len(want) > 0 {
					noError(t, err)
					sameSeqs(t, query, found, want)
					continue
				}
				var large *continuo.LargeEntryError
				if !errors.As(err, &large) || *large != (continuo.LargeEntryError{Seq: whole[0].Seq, Bytes: sum - before}) || len(found) > 0 {
					t.Errorf("%+v: got %v and %v, want that entry %d has %d bytes", query, seqs(found), err, whole[0].Seq, sum)
				}
			}
		}
	}
	sameSeqs(t, continuo.EntryQuery{Limit: 9}, read(t, store, "a", continuo.EntryQuery{From: 10, To: 12, Limit: 9, MaxBytes: 1}), nil)
}

// testEntriesAt reads places in an order of its own, some twice and some that do not exist, under every bound.
func testEntriesAt(t *testing.T, opener Opener) {
	store := open(t, opener)
	all := map[continuo.EntryPlace]continuo.Entry{}
	for i, id := range []string{"a", "b", "c"} {
		made := entries(id, 1, int64(4+i))
		c := conversation(id)
		c.LastSeq = int64(len(made))
		noError(t, store.Create(t.Context(), c, made))
		for _, e := range made {
			all[continuo.EntryPlace{ConversationID: id, Seq: e.Seq}] = e
		}
	}
	noError(t, store.Delete(t.Context(), "c"))
	places := placesOf("b", 5, "a", 2, "a", 0, "c", 1, "b", 5, "none", 1, "b", 1<<40, "a", 1, "b", 6, "a", 5)
	var want []continuo.Entry
	sum := []int64{0} // of the first so many
	for _, place := range places {
		entry, size := all[place], 0
		if place.ConversationID == "c" {
			entry = continuo.Entry{}
		}
		if entry.Seq > 0 {
			body, err := entry.MarshalJSON()
			noError(t, err)
			size = len(body)
		}
		want = append(want, entry)
		sum = append(sum, sum[len(sum)-1]+int64(size))
	}
	for n := range len(places) {
		for _, most := range []int64{max(1, sum[n]), sum[n+1] + 1, 1 << 30} {
			found, err := store.EntriesAt(t.Context(), places, most)
			noError(t, err)
			fit := 0
			for fit < len(places) && sum[fit+1] <= most {
				fit++
			}
			sameEntries(t, fmt.Sprintf("in %d bytes", most), found, want[:fit])
		}
	}
	if found, err := store.EntriesAt(t.Context(), nil, 1); err != nil || len(found) > 0 {
		t.Errorf("of no places there are %v, %v", seqs(found), err)
	}
	found, err := store.ConversationsByID(t.Context(), []string{"b", "none", "a", "c", "b"})
	noError(t, err)
	slices.SortFunc(found, func(x, y continuo.Conversation) int { return strings.Compare(x.ID, y.ID) })
	if len(found) != 2 || found[0].ID != "a" || found[1].ID != "b" || found[1].LastSeq != 5 {
		t.Errorf("found %+v, want a and b", found)
	}
	if found, err := store.ConversationsByID(t.Context(), nil); err != nil || len(found) > 0 {
		t.Errorf("of no ids there are %v, %v", found, err)
	}
}

func placesOf(idsAndSeqs ...any) (places []continuo.EntryPlace) {
	for pair := range slices.Chunk(idsAndSeqs, 2) {
		places = append(places, continuo.EntryPlace{ConversationID: pair[0].(string), Seq: int64(pair[1].(int))})
	}
	return places
}

// testEntrySizes compares with what is read, also of a fork, behind the end, and after a redaction.
func testEntrySizes(t *testing.T, opener Opener) {
	store := open(t, opener)
	made := entries("a", 1, 6)
	for i := range made {
		made[i].Chars, made[i].Tokens = 10*(i+1), 1<<i
	}
	c := conversation("a")
	c.LastSeq = 6
	noError(t, store.Create(t.Context(), c, made))
	noError(t, store.Create(t.Context(), forkOf("f", continuo.Segment{ConversationID: "a", Through: 4}), nil))
	appendEntries(t, store, "f", 5, 7)
	expect := func(id string, from, to int64) {
		t.Helper()
		var want continuo.Size
		for _, e := range read(t, store, id, continuo.EntryQuery{From: from, To: to, Limit: 99}) {
			want = want.Add(continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens})
		}
		got, err := store.EntrySizes(t.Context(), id, from, to)
		noError(t, err)
		same(t, fmt.Sprintf("sizes of %s from %d to %d", id, from, to), got, want)
	}
	all := func() {
		t.Helper()
		for from := int64(0); from <= 8; from++ {
			for to := int64(0); to <= 8; to++ {
				expect("a", from, to)
				expect("f", from, to)
			}
		}
	}
	all()
	redacted := made[2]
	redacted.Content, redacted.Chars, redacted.Tokens, redacted.Redacted = continuo.Text("gone"), 4, 1, &continuo.Redaction{At: day}
	noError(t, store.Redact(t.Context(), "a", []continuo.Entry{redacted}))
	all()
	expect("none", 1, 9)
}

func testConflict(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 3)
	for _, after := range []int64{0, 2, 4, 100} {
		err := store.Append(t.Context(), continuo.Batch{ConversationID: "a", After: after, Entries: entries("a", after+1, after+2)})
		var conflict *continuo.ConflictError
		if !errors.As(err, &conflict) || *conflict != (continuo.ConflictError{Want: after + 1, Have: 4}) {
			t.Errorf("append after %d: %v", after, err)
		}
	}
	sameEntries(t, "entries", readAll(t, store, "a"), entries("a", 1, 3))
	got, err := store.Conversation(t.Context(), "a")
	noError(t, err)
	if got.LastSeq != 3 || !got.UpdatedAt.Equal(day) {
		t.Errorf("refused appends changed the conversation: %+v", got)
	}
}

func testAllOrNothing(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	receipt := continuo.Receipt{Key: "k", Fingerprint: "f", First: 1, Last: 2}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: entries("a", 1, 2), Receipts: []continuo.Receipt{receipt}}))
	broken := entry("a", 4)
	broken.Extra = json.RawMessage(`{"no JSON`)
	for what, batch := range map[string]continuo.Batch{
		"a receipt is taken": {
			ConversationID: "a", After: 2, Entries: entries("a", 3, 5),
			Receipts: []continuo.Receipt{{Key: "new", First: 3, Last: 3}, {Key: "k", Fingerprint: "g", First: 4, Last: 5}},
		},
		"the second entry cannot be written": {ConversationID: "a", After: 2, Entries: []continuo.Entry{entry("a", 3), broken}},
	} {
		if err := store.Append(ctx, batch); err == nil {
			t.Errorf("%s, but the batch was appended", what)
		}
	}
	sameEntries(t, "entries", readAll(t, store, "a"), entries("a", 1, 2))
	if err := second(store.Receipt(ctx, "a", "new")); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("a receipt of a refused batch: %v", err)
	}
	got, err := store.Receipt(ctx, "a", "k")
	noError(t, err)
	same(t, "the receipt that was there", got, receipt)
	appendEntries(t, store, "a", 3, 3)
}

// testFidelity compares entries with what was given, not with an earlier read.
func testFidelity(t *testing.T, opener Opener) {
	store := open(t, opener)
	texts := []string{
		"", " ", "a\x00b\x00", "\u2028\u2029\ufeff", "😀👩‍👩‍👧‍👦 e\u0301 \U0010ffff", "<script>&amp;</script>", `"\u0000" \ / '; DROP TABLE entries; --`,
		"line\r\nline\ttab\x7f\x1b[0m\x01", strings.Repeat("1 MiB of text, ä ", 1<<16), "\ufffd",
	}
	made := []continuo.Entry{fullEntry("a")}
	for _, text := range texts {
		e := entry("a", 1)
		e.Content = continuo.Text(text)
		made = append(made, e)
		call := entry("a", 2)
		call.Content, call.ToolCalls = continuo.Null(), []continuo.ToolCall{continuo.FunctionCall("c"+text[:min(len(text), 20)], "f", text)}
		call.ToolCalls[0].ID = strings.ToValidUTF8(call.ToolCalls[0].ID, "")
		made = append(made, call)
	}
	for _, content := range []continuo.Content{{}, continuo.Null(), continuo.Parts([]continuo.Part{}...), oddParts(t)} {
		e := entry("a", 1)
		e.Content = content
		made = append(made, e)
	}
	for i := range made {
		made[i].Seq = int64(i + 1)
	}
	create(t, store, "a", 0)
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: "a", Entries: made}))
	sameEntries(t, "read back", readAll(t, store, "a"), made)
	other := open(t, opener)
	sameEntries(t, "read by another store", readAll(t, other, "a"), made)
}

func oddParts(t *testing.T) continuo.Content {
	t.Helper()
	var content continuo.Content
	noError(t, json.Unmarshal([]byte(`[{"text":"first \u0000","type":"text","cache_control":{"ttl":"1h","type":"ephemeral"}},`+
		`{"z":1.0,"a":123456789012345678901234567890,"type":"widget","n":1e400,"b":{"y":[],"x":{}}},`+
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("QUJD", 30000)+`"}}]`), &content))
	return content
}

// fullEntry has every field set.
func fullEntry(conversationID string) continuo.Entry {
	return continuo.Entry{
		ID: "ent_full", ConversationID: conversationID, CreatedAt: day,
		Role: continuo.Assistant, Content: continuo.Text("half an ans"),
		ToolCalls: []continuo.ToolCall{
			{ID: "1", Type: "function", Name: "f", Arguments: `{"a" : 1.0e5, "a":2`, Extra: json.RawMessage(`{"z":{"sig":"a+/="},"b":1.0}`)},
			{ID: "2", Type: "custom", Name: "g", Arguments: "not JSON\x00"},
		},
		Name: "name", Reasoning: &continuo.Reasoning{Text: "hm", Signature: "c2ln"},
		Error: &continuo.TurnError{
			Code: continuo.LLMError, Reason: continuo.ReasonTimeout, Message: "m", Retryable: true, ProviderStatus: 504, RetryAfter: 7,
			PartialToolCalls: []continuo.PartialToolCall{{ID: "p", Name: "f", Arguments: `{"a`}},
		},
		Mode: continuo.ModeAgent, RunID: "run", WorkflowID: "wf", NodeID: "node", AgentID: "agent", TurnID: "turn",
		Author: &continuo.Author{RoleName: "r", DisplayName: "d", AgentName: "a"}, Hidden: true,
		PartType: "text", ToolName: "tool", Outcome: "Read config.yml", DurationMS: 17, IsCollapsed: true,
		Widget: json.RawMessage(`{"w":[1.0,{"v":"\u2028"}]}`), OutputRef: "@state/x.json",
		Chars: 11, Tokens: 4, Tokenizer: "o200k_base",
		Round: &continuo.Round{
			View: "chat", ViewHash: "h", At: 3, Window: continuo.Window{Epoch: 2, Start: 1, Pins: []int64{1}, Limit: "tokens", Markers: true},
			Usage: &continuo.Usage{InputTokens: 1, OutputTokens: 2, Cost: continuo.Cost{Nano: 5, Currency: continuo.USD}},
		},
		Vendor:  map[string]json.RawMessage{"v": json.RawMessage(`[{"z":1,"a":9007199254740993}]`), "w": json.RawMessage(`null`)},
		Repairs: []string{"orphan_tool"}, Extra: json.RawMessage(`{"unknown":1E+2,"a":"b"}`),
	}
}

func testReceipts(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	var want []continuo.Receipt
	for i := range int64(3) {
		want = append(want, continuo.Receipt{Key: fmt.Sprintf("key %d\u2028'", i), Fingerprint: fmt.Sprint("f", i), First: 2*i + 1, Last: 2*i + 2})
	}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: entries("a", 1, 4), Receipts: want[:2]}))
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 4, Entries: entries("a", 5, 6), Receipts: want[2:]}))
	for _, s := range []maintenance.Store{store, open(t, opener)} {
		for _, receipt := range want {
			got, err := s.Receipt(ctx, "a", receipt.Key)
			noError(t, err)
			same(t, "receipt", got, receipt)
			if err := second(s.Receipt(ctx, "b", receipt.Key)); !errors.Is(err, continuo.ErrNotFound) {
				t.Errorf("another conversation's receipt: %v", err)
			}
		}
	}
}

func testAdvanceReceipt(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: entries("a", 1, 2), Receipts: []continuo.Receipt{{Key: "append", Fingerprint: "f", First: 1, Last: 2}}}))
	before, err := store.Conversation(ctx, "a")
	noError(t, err)
	at := func(first, last int64) continuo.Receipt {
		return continuo.Receipt{Key: "mark 'x'\u2028", Fingerprint: "m", First: first, Last: last}
	}
	for _, step := range []struct{ give, want continuo.Receipt }{
		{at(0, 0), at(0, 0)},
		{at(2, 0), at(2, 0)},
		{at(1, 0), at(2, 0)},
		{at(0, 7), at(0, 7)},
		{at(9, 6), at(0, 7)},
		{at(0, 7), at(0, 7)},
		{at(3, 7), at(3, 7)},
		{continuo.Receipt{Key: at(0, 0).Key, Fingerprint: "another", First: 9, Last: 99}, at(3, 7)},
		{continuo.Receipt{Key: "append", Fingerprint: "m", First: 9, Last: 99}, continuo.Receipt{Key: "append", Fingerprint: "f", First: 1, Last: 2}},
	} {
		kept, err := store.AdvanceReceipt(ctx, "a", step.give)
		noError(t, err)
		same(t, "receipt after an advance", kept, step.want)
		for _, s := range []maintenance.Store{store, open(t, opener)} {
			got, err := s.Receipt(ctx, "a", step.give.Key)
			noError(t, err)
			same(t, "receipt that is kept", got, step.want)
		}
	}
	after, err := store.Conversation(ctx, "a")
	noError(t, err)
	same(t, "conversation", after, before)
	expectError(t, "of no conversation", second(store.AdvanceReceipt(ctx, "none", at(1, 1))), continuo.ErrNotFound)
	noError(t, store.Delete(ctx, "a"))
	expectError(t, "of a deleted conversation", second(store.AdvanceReceipt(ctx, "a", at(1, 9))), continuo.ErrNotFound)
}

func testBlobs(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	blobs := map[string][]byte{"h1": []byte("\x00\xff binary"), "h2": {}, "h3": []byte(strings.Repeat("0123456789abcdef", 1<<16))}
	for range 2 {
		for hash, data := range blobs {
			noError(t, store.PutBlob(ctx, hash, data))
		}
	}
	noError(t, store.PutBlob(ctx, "h1", []byte("other bytes under the same hash change nothing")))
	for _, s := range []maintenance.Store{store, open(t, opener)} {
		for hash, want := range blobs {
			got, err := s.Blob(ctx, hash)
			noError(t, err)
			if string(got) != string(want) {
				t.Errorf("blob %s: got %d bytes, want %d", hash, len(got), len(want))
			}
		}
	}
}
