package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/render"
)

// mcpListing is what a response says of a server. It is stored with the request.
type mcpListing struct {
	Label string             `json:"server_label"`
	Hash  string             `json:"hash"`
	Names map[string]mcpName `json:"names"` // by the names in requests to models
	// Tools is nil where an earlier response of the conversation has the same.
	Tools []mcpListed `json:"tools,omitempty"`
}

// mcpName is the name of a tool at its server.
type mcpName struct {
	Name string `json:"name"`
	Asks bool   `json:"asks,omitempty"`
}

// mcpListed is a tool in an item of the type mcp_list_tools.
type mcpListed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Annotations json.RawMessage `json:"annotations"`
}

func listingOf(label string, served []*mcpServed) mcpListing {
	listing := mcpListing{Label: label, Names: map[string]mcpName{}, Tools: []mcpListed{}}
	for _, one := range served {
		spec := one.Spec()
		listing.Names[render.ToolName(spec.Name)] = mcpName{one.name, one.asks}
		listing.Tools = append(listing.Tools, mcpListed{one.name, spec.Description, spec.Parameters, json.RawMessage("null")})
	}
	sum := sha256.Sum256(rawjson.MustMarshal(listing.Tools))
	listing.Hash = hex.EncodeToString(sum[:8])
	return listing
}

// mcpReach bounds how many entries are read to find out whether a conversation has a listing already.
const mcpReach = 256

// newListings are the listings of a request, without the tools of those that a conversation has already.
func (a *responsesAPI) newListings(ctx context.Context, conversation continuo.Conversation, m *mcpTools) ([]mcpListing, error) {
	listings := slices.Clone(m.listings)
	if conversation.LastSeq == 0 {
		return listings, nil
	}
	for entry, err := range a.engine.Conversations.Read(ctx, conversation, continuo.Range{From: max(1, conversation.LastSeq-mcpReach), To: conversation.LastSeq}) {
		if err != nil {
			return nil, err
		}
		echo, ok := echoOf(&entry)
		for i := range listings {
			if ok && slices.ContainsFunc(echo.MCP, func(had mcpListing) bool {
				return had.Label == listings[i].Label && had.Hash == listings[i].Hash && had.Tools != nil
			}) {
				listings[i].Tools = nil
			}
		}
	}
	return listings, nil
}

// mcpNames are the tools of MCP servers that a request had, by their names in requests to models.
type mcpNames map[string]mcpMark

func (e *responseEcho) mcpNames() mcpNames {
	names := mcpNames{}
	for _, listing := range e.MCP {
		for name, one := range listing.Names {
			names[name] = mcpMark{Server: listing.Label, Name: one.Name, Asks: one.Asks}
		}
	}
	return names
}

// annotate marks the calls of an answer that are those of MCP servers.
func (n mcpNames) annotate(answer *continuo.Entry) {
	marks := map[string]mcpMark{}
	for _, call := range answer.ToolCalls {
		if mark, ok := n[call.Name]; ok {
			marks[call.ID] = mark
		}
	}
	if len(marks) > 0 {
		answer.Vendor = withVendor(answer.Vendor, mcpMember, rawjson.MustMarshal(marks))
	}
}
