// The official client of Gemini's API before a gateway: streams, tools and errors. It prints a line for each check and ends
// with the number of checks.
import { GoogleGenAI, ApiError } from "@google/genai";

const ai = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: process.env.BASE_URL.replace(/\/v1$/, ""), apiVersion: "v1beta" } });
const model = process.env.MODEL;
let passed = 0, failed = 0;
async function check(name, run) {
  try { await run(); passed++; } catch (error) { failed++; console.log(`FAILED ${name}: ${error.stack ?? error}`); }
}
function equal(got, want) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}
const tools = [{ functionDeclarations: [{ name: "look", parametersJsonSchema: { type: "object", properties: { at: { type: "integer" } } } }] }];
async function streamed(request) {
  let text = "", thoughts = "", calls = [], finish = "";
  for await (const chunk of await ai.models.generateContentStream(request)) {
    for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
      if (part.functionCall) calls.push(part.functionCall);
      else if (part.thought) thoughts += part.text ?? "";
      else text += part.text ?? "";
    }
    finish = chunk.candidates?.[0]?.finishReason ?? finish;
  }
  return { text, thoughts, calls, finish };
}

await check("a content", async () => {
  const answer = await ai.models.generateContent({ model, contents: "say: one message" });
  equal([answer.text, answer.candidates[0].finishReason, answer.usageMetadata.totalTokenCount], ["one message", "STOP", 130]);
});
await check("a stream", async () => {
  const got = await streamed({ model, contents: "say: streamed żółć 🚀" });
  equal([got.text, got.finish], ["streamed żółć 🚀", "STOP"]);
});
await check("thoughts", async () => {
  const got = await streamed({ model, contents: "think: So." });
  equal([got.thoughts, got.text], ["Hm.", "So."]);
});
await check("two calls at once, and their results", async () => {
  const contents = [{ role: "user", parts: [{ text: "call: look twice" }] }];
  const got = await streamed({ model, contents, config: { tools } });
  equal(got.calls.map((c) => [c.name, c.args]), [["look", { at: 1 }], ["look", { at: 2 }]]);
  contents.push({ role: "model", parts: got.calls.map((functionCall) => ({ functionCall })) });
  contents.push({ role: "user", parts: got.calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: `seen ${c.args.at}` } } })) });
  const second = await ai.models.generateContent({ model, contents, config: { tools } });
  if (!/seen 1.*seen 2/s.test(second.text)) throw new Error(second.text);
});
await check("a chat", async () => {
  const chat = ai.chats.create({ model });
  equal((await chat.sendMessage({ message: "say: first" })).text, "first");
  let text = "";
  for await (const chunk of await chat.sendMessageStream({ message: "say: second" })) text += chunk.text ?? "";
  equal([text, chat.getHistory().length], ["second", 4]);
});
await check("the end of a limit", async () => {
  const answer = await ai.models.generateContent({ model, contents: "length: cut", config: { maxOutputTokens: 3 } });
  equal(answer.candidates[0].finishReason, "MAX_TOKENS");
});
await check("an error before the stream", async () => {
  const error = await streamed({ model, contents: "fault: 429" }).then(() => null, (e) => e);
  if (!(error instanceof ApiError)) throw new Error(`got ${error}`);
  equal(error.status, 429);
});
await check("an error within the stream", async () => {
  const error = await streamed({ model, contents: "fault: cut" }).then((got) => got, (e) => e);
  if (!(error instanceof Error)) throw new Error(`got ${JSON.stringify(error)}`);
});
await check("an unknown model", async () => {
  const error = await ai.models.generateContent({ model: "nope", contents: "x" }).then(() => null, (e) => e);
  if (!(error instanceof ApiError)) throw new Error(`got ${error}`);
  equal(error.status, 404);
});
await check("the number of tokens, and the models", async () => {
  const count = await ai.models.countTokens({ model, contents: "hello there" });
  if (!(count.totalTokens > 0)) throw new Error(JSON.stringify(count));
  equal((await ai.models.get({ model })).name, `models/${model}`);
});
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
