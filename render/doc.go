// Package render writes a plan's messages in the formats that models read: OpenAI chat completions, Anthropic
// messages, and the transcript. It also parses transcripts, and a model's output in the transcript's
// streaming form ([EventReader]). Validators check message lists of the two protocols and name the broken
// rule ([CheckOpenAIChat], [CheckAnthropic]).
//
// Rendering is pure: no clock, no state, the same input gives the same bytes. The bytes of a message depend
// only on the message and on those before it, so that a longer conversation extends the bytes of a shorter
// one: for OpenAI all of them, for Anthropic all but the last message, which later messages of the same role
// are merged into. White space between JSON tokens is removed everywhere, in parts, arguments and schemas
// too, so that a request rendered again from the store is equal to the one rendered from memory; key order
// and values are unchanged.
//
// The input must consist of whole groups, as package window builds them: an incomplete group is an error that
// names the message. The output then satisfies the protocol.
//
// # Call ids and names
//
// Anthropic: ids become letters, digits, "_" and "-"; an id that was used before in the request gets "_2",
// "_3" and so on, since ids may repeat from turn to turn and are paired by adjacency. OpenAI: ids stay, but
// one of more than 40 bytes is shortened to end with a hash, unless the provider made it. In names of tools
// and speakers, characters that the protocols refuse become "_".
//
// # Vendor data
//
// Entry.Vendor[provider] is read only when the request goes to that provider. For OpenAI chat it is an object
// whose members are added to the assistant message. For Anthropic it is {"content": [blocks]} on an assistant
// or user entry, and {"block": {tool_result}} or {"content": [blocks]} on a tool entry: the blocks are sent
// as they are, thinking signatures included, as long as the plan shows the entry whole, with three changes:
// cache marks are removed (see [AnthropicRequest]), text blocks without text are left out, and a tool_use
// before text is moved behind it, because the API refuses both.
//
// Pitfalls: the number of rendered messages can differ from the number of the plan's messages: because of
// merging, empty entries, and images that a tool returned.
package render
