package recallbench

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/evidence"
)

func dataFile(t testing.TB, name string) []evidence.Conversation {
	t.Helper()
	path := filepath.Join(cmp.Or(os.Getenv("CONTINUO_DATA"), filepath.Join("..", "..", "..", "shared", "data")), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: there is no %s: set CONTINUO_DATA to the folder that holds it", path)
	}
	if testing.Short() {
		t.Skip("SKIPPED: replays whole conversations")
	}
	conversations, err := evidence.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return conversations
}

// TestFewTurnsRecall replays talk and work in which hardly a message asks for something that the window no longer holds.
func TestFewTurnsRecall(t *testing.T) {
	turns, blocks := 0, 0
	for _, name := range []string{"coding-agents.jsonl.gz", "aider-history.jsonl.gz", "tau2.jsonl.gz", "multi-agent.jsonl.gz", "multilingual.jsonl.gz"} {
		fileTurns, fileBlocks, shown := 0, 0, 0
		for _, c := range dataFile(t, name) {
			if len(c.Messages) < 20 || fileTurns > 400 {
				continue
			}
			if strings.HasPrefix(name, "aider") {
				c.Messages = c.Messages[:min(len(c.Messages), 400)]
			}
			found, err := Replay(t.Context(), &c, "continuity", 0)
			if err != nil {
				t.Logf("%s: %v", c.ID, err)
				continue
			}
			fileTurns += found.Turns
			fileBlocks += len(found.Blocks)
			for _, block := range found.Blocks[:min(len(found.Blocks), 2)] {
				if shown++; shown <= 8 {
					t.Logf("%s\n  asked %.300q\n  %.900q %v", c.ID, block.Message, block.Text, block.Items)
				}
			}
		}
		t.Logf("%s: %d of %d turns recall something", name, fileBlocks, fileTurns)
		if fileTurns > 50 && 19*fileBlocks > fileTurns { // one half of a percent more in one file
			t.Errorf("%s: %d of %d turns recall something", name, fileBlocks, fileTurns)
		}
		turns, blocks = turns+fileTurns, blocks+fileBlocks
	}
	if turns < 50 {
		t.Fatalf("only %d turns have a window that leaves something out", turns)
	}
	if 20*blocks > turns {
		t.Errorf("%d of %d turns recall something, more than 5 %%", blocks, turns)
	}
}

// TestSearchFindsEvidence asks the questions as they are in a search.
func TestSearchFindsEvidence(t *testing.T) {
	for name, least := range map[string]float64{"locomo.jsonl.gz": .80, "beam.jsonl.gz": .62} {
		conversations := dataFile(t, name)
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:2]
		}
		found, err := MeasureSearch(t.Context(), conversations, SearchOptions{Matches: 20})
		if err != nil {
			t.Fatal(err)
		}
		share, full := found.Result[""].Means()
		t.Logf("%s: %.3f of the evidence among 20 matches, all of it for %.3f; %d of %d questions find nothing, %v each", name, share, full, found.Empty, found.Questions, found.Took/time.Duration(found.Questions))
		if 100*found.Empty > found.Questions || share < least-.06 {
			t.Errorf("%s: %.3f of the evidence is found, and nothing for %d of %d questions", name, share, found.Empty, found.Questions)
		}
	}
}

// TestSearchesAcrossConversations asks the questions in a search of all sessions of a conversation, each a conversation of its own: right
// vectors and a right reranker find more among the first 10 matches, vectors that say nothing and a server that is down lose nothing, and
// the worst order little.
func TestSearchesAcrossConversations(t *testing.T) {
	for _, name := range []string{"locomo.jsonl.gz", "beam.jsonl.gz"} {
		conversations := dataFile(t, name)
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:1]
			conversations[0].Questions = conversations[0].Questions[:min(50, len(conversations[0].Questions))]
		}
		right := evidenceOf(conversations)
		share := func(how string, options SearchOptions) float64 {
			t.Helper()
			options.Matches, options.Sessions = 10, true
			found, err := MeasureSearch(t.Context(), conversations, options)
			if err != nil {
				t.Fatal(err)
			}
			share, full := found.Result[""].Means()
			t.Logf("%s, %s: %.3f / %.3f among 10 matches", name, how, share, full)
			return share
		}
		words := share("words", SearchOptions{})
		for how, test := range map[string]struct {
			options SearchOptions
			least   float64
			isLong  bool
		}{
			"right vectors":              {SearchOptions{Embedder: planted{evidence: right, noise: 1}}, words + .03, false},
			"vectors that say nothing":   {SearchOptions{Embedder: planted{}}, words - .01, true},
			"no server for vectors":      {SearchOptions{Embedder: planted{isDown: true}}, words, true},
			"a right reranker":           {SearchOptions{Reranker: plantedOrder{right, "right"}}, words + .01, true},
			"the worst reranker":         {SearchOptions{Reranker: plantedOrder{right, "wrong"}}, words - .06, false},
			"a reranker without a sense": {SearchOptions{Reranker: plantedOrder{right, "nonsense"}}, words, true},
			"no server for the reranker": {SearchOptions{Reranker: plantedOrder{right, "down"}}, words, true},
		} {
			if test.isLong && os.Getenv("CONTINUO_LONG") == "" {
				continue
			}
			if found := share(how, test.options); found < test.least {
				t.Errorf("%s, %s: %.3f of the evidence, by words %.3f", name, how, found, words)
			}
		}
	}
}

// evidenceOf are the texts with the evidence of questions.
func evidenceOf(conversations []evidence.Conversation) map[string][]string {
	right := map[string][]string{}
	for i := range conversations {
		c := &conversations[i]
		for _, q := range c.Questions {
			for _, message := range q.Evidence {
				right[q.Question] = append(right[q.Question], c.Messages[message].Text())
			}
		}
	}
	return right
}

// TestFewTurnsOfRolesRecall replays conversations of teams for a role of a crew, three messages to a turn at least.
func TestFewTurnsOfRolesRecall(t *testing.T) {
	turns, blocks := 0, 0
	for _, name := range []string{"multi-agent.jsonl.gz"} {
		fileTurns, fileBlocks, shown := 0, 0, 0
		for _, c := range dataFile(t, name) {
			if len(c.Messages) < 20 || fileTurns > 300 {
				continue
			}
			found, err := ReplayCrew(t.Context(), &c, "full", 3)
			if err != nil {
				t.Logf("%s: %v", c.ID, err)
				continue
			}
			fileTurns, fileBlocks = fileTurns+found.Turns, fileBlocks+len(found.Blocks)
			for _, block := range found.Blocks[:min(len(found.Blocks), 2)] {
				if shown++; shown <= 8 {
					t.Logf("%s\n  asked %.300q\n  %.900q", c.ID, block.Message, block.Text)
				}
			}
		}
		t.Logf("%s: %d of %d turns of roles recall something", name, fileBlocks, fileTurns)
		turns, blocks = turns+fileTurns, blocks+fileBlocks
	}
	if turns < 50 {
		t.Fatalf("only %d turns have a window that leaves something out", turns)
	}
	if 20*blocks > turns {
		t.Errorf("%d of %d turns of roles recall something, more than 5 %%", blocks, turns)
	}
}
