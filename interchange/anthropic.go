package interchange

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// vendorKey is the key of Anthropic's own data in Entry.Vendor.
const vendorKey = "anthropic"

// anthropic is the form with content blocks. An assistant's message is one entry; in a user's message, each
// tool_result becomes a tool entry, and the remaining blocks become one entry.
type anthropic struct{}

// joins reports that adjacent results are one user message.
func (anthropic) joins(before, next *continuo.Entry) bool {
	return before.Role == continuo.Tool && next.Role == continuo.Tool
}

func (anthropic) decode(message rawjson.Object, report *repairs) ([]*draft, error) {
	read, err := messages.ReadAnthropic(message, messages.Options{Provider: vendorKey})
	if err != nil {
		return nil, err
	}
	drafts := make([]*draft, len(read))
	for i, m := range read {
		drafts[i] = newDraft(m, report)
	}
	return drafts, nil
}

// forgetBlocks moves the blocks from the vendor data to the record, because a repair gave the calls other
// ids.
func (d *draft) forgetBlocks() {
	if d.entry.Vendor[vendorKey] != nil {
		delete(d.entry.Vendor, vendorKey)
		d.record.Raw = d.blocks
	}
}
