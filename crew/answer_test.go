package crew_test

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

func TestAPassIsStoredAsThePlaceholder(t *testing.T) {
	for name, text := range map[string]string{
		"bare": ".....", "white space": " \n.....\t\n", "backticks": "`.....`", "fence": "```\n.....\n```", "quotes": `"....."`, "single quotes": "'.....'",
		"typographic quotes": "“.....”", "German quotes": "„.....“", "French quotes": "« ..... »", "bold": "**.....**", "italics": "_....._",
		"bold and backticks": "**`.....`**", "brackets": "(.....)", "more dots": "......", "three dots": "...", "ellipsis": "…", "ellipsis and dots": "…..",
		"two lines": ".....\n.....", "paragraphs": ".....\n\n.....", "zero width": "\u200b.....\ufeff", "between": ".\u200b.\u200b.\u200b.\u200b.",
		"spaced": ". . . . .", "escaped": `\.\.\.\.\.`, "own label": "Assistant (Bad One): .....", "own name": "Bad One: .....", "role name": "bad_one: `.....`",
		"label in bold": "**Bad One:** .....", "label twice": "Assistant (Bad One): Assistant (Bad One): .....", "label alone": "Assistant (Bad One):",
		"label on its own line": "Assistant (Bad One):\n\n.....", "fullwidth": "．．．．．", "ideographic": "。。。。。", "list": "- .....", "heading": "# .....",
		"tag": "<response>.....</response>", "token of a template": ".....<|im_end|>", "end of a sequence": "<p>.....</p></s>", "role without a name": "Assistant: .....",
		"name on its own line": "Bad One\n.....", "name as a heading": "### Bad One\n\n.....", "name in brackets": "[Bad One] .....", "name and a dash": "**bad_one** — `.....`",
		"label without a colon": "Assistant (Bad One) .....", "colours": "\x1b[2m.....\x1b[0m",
	} {
		if got := crew.NormalizeAnswer(text, "Bad One", "bad_one"); got != continuo.Placeholder {
			t.Errorf("%s: %q is kept as %q", name, text, got)
		}
	}
}

func TestAnAnswerStaysAsItIs(t *testing.T) {
	for _, text := range []string{
		"", " ", ".", "..", "!", "-----", "..... done", "Fine.....", "`.....` means that nothing is to be said.", "PASS", "5", "…and then?",
		"Assistant (Other): .....", "Other: .....", "User: .....", "Bad: one", "  indented", "1: Bad One: x", "Bad One\n: x", "```\ncode.\n```",
		"* Bad One is here: look", "Bad Ones: .....x", "https://bad.one", "\u200b", "Bad One", "**Bad One**", "### Bad One\n", "Bad One\n\nis here.", "[Bad One] is here.", "<b>no</b>.....", "a < b ...", "<...>", "- ..", "- - -",
		"Other\n.....", "Assistant ..... is asked",
	} {
		if got := crew.NormalizeAnswer(text, "Bad One", "bad_one"); got != text {
			t.Errorf("%q is kept as %q", text, got)
		}
	}
}

func TestARolesOwnLabelIsTakenOff(t *testing.T) {
	for text, want := range map[string]string{
		"Assistant (Builder): Done.": "Done.", "Builder: Done.": "Done.", "builder: Done.": "Done.", "ASSISTANT(BUILDER) :  Done.": "Done.",
		"**Builder:** Done.": "Done.", "**Builder**: Done.": "Done.", "__Builder__: **Done.**": "**Done.**", "[Builder]: Done.": "Done.",
		`\Assistant (Builder): Done.`: "Done.", "### Builder:\n\nDone.\n": "Done.\n", "Assistant（Builder）：Done.": "Done.",
		"Assistant (Builder): Assistant (Builder): Done.": "Done.", "Builder: Builder: Builder: Done.": "Done.", "\x1b[1mBuilder:\x1b[0m Done.": "Done.",
		"Builder: Assistant (Planner): do it": "Assistant (Planner): do it", "Builder: **bold** start": "**bold** start", "builder_2: Done.": "Done.",
		"Assistant: Done.": "Done.", "### Builder\n\nDone.": "Done.", "**Builder**\nDone.": "Done.", "[Builder]\n\n## Plan": "## Plan", "**Assistant (Builder)**\n\nDone.": "Done.",
	} {
		if got := crew.NormalizeAnswer(text, "Builder", "builder_2"); got != want {
			t.Errorf("%q is kept as %q, want %q", text, got, want)
		}
	}
}

// A screen that shows an answer while it arrives holds back what Spoken may take off.
func TestNothingIsShownThatMayBeTakenOff(t *testing.T) {
	names := []string{"Bad One", "bad_one"}
	for _, text := range []string{
		"**`.....`**", "Assistant (Bad One): .....", "**Bad One:** .....", "Bad One: Bad One: ....", "…..\n“.....”",
		"[Bad One] .....", "Bad One — .....", "### Bad One\n\n.....", "<response>.....</response>", "..... <|im_end|>", "Assistant: .....",
	} {
		for at := range text {
			if beginning := text[:at]; !crew.MayBecomePass(beginning, names...) {
				t.Errorf("%q of %q is shown", beginning, text)
			}
		}
	}
	for _, text := range []string{"B", "Bad One: Done", "..... d", "Assistant (Ot", "Done", "[Bad One] i", "Bad One — I", "<b>I", "a <"} {
		if want := text == "B"; crew.MayBecomePass(text, names...) != want {
			t.Errorf("MayBecomePass(%q) = %t", text, !want)
		}
	}
}

func FuzzNormalizeAnswer(f *testing.F) {
	for _, text := range []string{".....", "Builder: x", "**Builder:** `.....`", "Builder: Builder:", "Assistant (Builder)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		normalized := crew.NormalizeAnswer(text, "Builder", "builder")
		if again := crew.NormalizeAnswer(normalized, "Builder", "builder"); again != normalized {
			t.Fatalf("%q is kept as %q, and that as %q", text, normalized, again)
		}
	})
}
