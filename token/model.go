package token

import "strings"

// ForModel returns the encoding of an OpenAI model and true, or, for a model whose tokenizer is not known,
// o200k as an estimate and false.
//
// Provider prefixes ("openai/gpt-4o", "openrouter/openai/o3"), fine-tunes ("ft:gpt-4o-mini:org::id"), dated
// and tagged names and Azure's spelling "gpt-35-turbo" are understood; upper and lower case are the same.
// Only the name counts: a server that offers another model as "gpt-4o" gets the count of gpt-4o. Source of
// the families: openai/tiktoken, tiktoken/model.py.
func ForModel(model string) (enc *Encoding, exact bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	switch {
	case hasFamily(name, o200kFamilies):
		return O200k(), true
	case hasFamily(name, cl100kFamilies):
		return CL100k(), true
	}
	return O200k(), false
}

var (
	// gpt-oss has the ranks of o200k_base under the name o200k_harmony; only its special tokens differ.
	o200kFamilies = []string{
		"gpt-4o", "chatgpt", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4", "codex", "gpt-oss",
	}
	cl100kFamilies = []string{
		"gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada-002", "davinci-002", "babbage-002",
	}
)

// hasFamily reports whether name is one of the families or one of them followed by a version, date or tag.
// "gpt-4.2" is no "gpt-4": a point makes another family, except after gpt-5, where it numbers releases.
func hasFamily(name string, families []string) bool {
	for _, family := range families {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || strings.ContainsRune("-:@", rune(rest[0])) || family == "gpt-5" && rest[0] == '.') {
			return true
		}
	}
	return false
}
