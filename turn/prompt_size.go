package turn

import (
	"crypto/sha256"
	"encoding/binary"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/token"
)

// promptSize measures the system messages and the tools, or the instruction that describes the tools. It is asked for at
// each step of a turn, and mostly for the same texts: the encoding remembers what it counted of them.
func promptSize(envelope *continuo.Envelope, encoding *token.Encoding) continuo.Size {
	size := continuo.Size{Messages: len(envelope.System)}
	if envelope.Instruction != "" {
		size.Messages++
	}
	size.Chars, size.Tokens = encoding.CountOnce(promptKey(envelope), func() (chars, tokens int) {
		for text := range promptTexts(envelope) {
			one := continuo.Measure(continuo.Text(text), nil, encoding)
			chars, tokens = chars+one.Chars, tokens+one.Tokens
		}
		return chars, tokens
	})
	return size
}

// promptTexts yields the texts that count as the prompt.
func promptTexts(envelope *continuo.Envelope) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, text := range envelope.System {
			if !yield(text) {
				return
			}
		}
		if envelope.Instruction != "" {
			yield(envelope.Instruction)
			return
		}
		for _, spec := range envelope.Tools {
			if !yield(string(rawjson.MustMarshal(spec))) {
				return
			}
		}
	}
}

// promptKey identifies what promptTexts yields, without making the texts.
func promptKey(envelope *continuo.Envelope) [sha256.Size]byte {
	texts := append(make([]string, 0, 64), envelope.System...)
	texts = append(texts, envelope.Instruction)
	if envelope.Instruction == "" {
		for _, spec := range envelope.Tools {
			texts = append(texts, spec.Name, spec.Description, string(spec.Parameters))
		}
	}
	length := 0
	for _, text := range texts {
		length += binary.MaxVarintLen64 + len(text)
	}
	data := binary.AppendUvarint(make([]byte, 0, length+binary.MaxVarintLen64), uint64(len(envelope.System)))
	for _, text := range texts {
		data = append(binary.AppendUvarint(data, uint64(len(text))), text...)
	}
	return sha256.Sum256(data)
}
