// The official client of Anthropic's API before a gateway: streams, tools and errors. It prints a line for each check and
// ends with the number of checks.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.BASE_URL.replace(/\/v1$/, ""), apiKey: "none", maxRetries: 0 });
const model = process.env.MODEL;
let passed = 0, failed = 0;
async function check(name, run) {
  try { await run(); passed++; } catch (error) { failed++; console.log(`FAILED ${name}: ${error.stack ?? error}`); }
}
function equal(got, want) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}
const user = (content) => ({ role: "user", content });
const tools = [{ name: "look", input_schema: { type: "object", properties: { at: { type: "integer" } } } }];

await check("a message", async () => {
  const message = await client.messages.create({ model, max_tokens: 99, messages: [user("say: one message")] });
  equal([message.type, message.role, message.stop_reason, message.content.map((b) => b.text)], ["message", "assistant", "end_turn", ["one message"]]);
  equal([message.usage.input_tokens, message.usage.output_tokens], [40, 30]);
});
await check("a stream", async () => {
  const stream = client.messages.stream({ model, max_tokens: 99, messages: [user("say: streamed żółć 🚀")] });
  let text = "";
  stream.on("text", (delta) => (text += delta));
  const message = await stream.finalMessage();
  equal([text, message.content[0].text, message.stop_reason], ["streamed żółć 🚀", "streamed żółć 🚀", "end_turn"]);
});
await check("thinking", async () => {
  const message = await client.messages.stream({ model, max_tokens: 99, messages: [user("think: So.")] }).finalMessage();
  equal(message.content.map((b) => b.type), ["thinking", "text"]);
  equal([message.content[0].thinking, message.content[1].text], ["Hm.", "So."]);
});
await check("two calls at once, and their results", async () => {
  const messages = [user("call: look twice")];
  const first = await client.messages.stream({ model, max_tokens: 99, tools, messages }).finalMessage();
  equal([first.stop_reason, first.content.map((b) => [b.type, b.name, b.input])], ["tool_use", [["tool_use", "look", { at: 1 }], ["tool_use", "look", { at: 2 }]]]);
  messages.push({ role: "assistant", content: first.content }, { role: "user", content: first.content.map((b) => ({ type: "tool_result", tool_use_id: b.id, content: `seen ${b.input.at}` })) });
  const second = await client.messages.create({ model, max_tokens: 99, tools, messages });
  equal(second.content[0].text, "results: seen 1, seen 2");
});
await check("the end of a limit", async () => {
  const message = await client.messages.create({ model, max_tokens: 3, messages: [user("length: cut")] });
  equal(message.stop_reason, "max_tokens");
});
await check("an error before the stream", async () => {
  const error = await client.messages.stream({ model, max_tokens: 99, messages: [user("fault: 429")] }).finalMessage().then(() => null, (e) => e);
  if (!(error instanceof Anthropic.RateLimitError)) throw new Error(`got ${error}`);
  equal([error.status, error.headers.get("retry-after")], [429, "7"]);
});
await check("an error within the stream", async () => {
  let text = "";
  const error = await client.messages.stream({ model, max_tokens: 99, messages: [user("fault: cut")] }).on("text", (d) => (text += d)).finalMessage().then(() => null, (e) => e);
  if (!(error instanceof Anthropic.APIError)) throw new Error(`got ${error}`);
  equal(text, "part one ");
});
await check("a wrong request", async () => {
  const error = await client.messages.create({ model, max_tokens: 99, messages: [] }).then(() => null, (e) => e);
  if (!(error instanceof Anthropic.BadRequestError)) throw new Error(`got ${error}`);
});
await check("an unknown model", async () => {
  const error = await client.messages.create({ model: "nope", max_tokens: 99, messages: [user("x")] }).then(() => null, (e) => e);
  if (!(error instanceof Anthropic.NotFoundError)) throw new Error(`got ${error}`);
});
await check("the number of tokens, and the models", async () => {
  const count = await client.messages.countTokens({ model, messages: [user("hello there")] });
  if (!(count.input_tokens > 0)) throw new Error(JSON.stringify(count));
  const names = [];
  for await (const one of client.models.list()) names.push(one.id);
  if (!names.includes(model)) throw new Error(names.join());
  equal((await client.models.retrieve(model)).id, model);
});
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
