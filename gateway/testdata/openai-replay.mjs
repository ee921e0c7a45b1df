// The official client of OpenAI's API before a gateway: a response is replayed from an event on, by the helper, which reads
// the whole stream and filters it, and by the call, which sends where to begin. It ends with the number of checks.
import OpenAI from "openai";

const ai = new OpenAI({ apiKey: "none", baseURL: process.env.BASE_URL, maxRetries: 0 });
const model = process.env.MODEL;
let passed = 0, failed = 0;
async function check(name, run) {
  try { await run(); passed++; } catch (error) { failed++; console.log(`FAILED ${name}: ${error.stack ?? error}`); }
}
function equal(got, want) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

const first = [];
for await (const event of await ai.responses.create({ model, input: "say: streamed żółć 🚀", stream: true })) first.push(event);
const { response } = first.at(-1);
const after = 4;

await check("the stream", async () => equal([first[0].type, first.at(-1).type, response.output_text ?? response.output[0].content[0].text], ["response.created", "response.completed", "streamed żółć 🚀"]));
await check("the call sends where to begin", async () => {
  const again = [];
  for await (const event of await ai.responses.retrieve(response.id, { stream: true, starting_after: after })) again.push(event);
  equal(again, first.slice(after + 1));
});
await check("the helper filters the whole stream", async () => {
  const again = [];
  const stream = ai.responses.stream({ response_id: response.id, starting_after: after });
  stream.on("event", (event) => again.push(event.sequence_number));
  const final = await stream.finalResponse();
  equal(again, first.slice(after + 1).map((event) => event.sequence_number));
  equal([final.id, final.status, final.output_text], [response.id, "completed", "streamed żółć 🚀"]);
});
await check("the helper from the beginning", async () => {
  const final = await ai.responses.stream({ response_id: response.id }).finalResponse();
  equal([final.id, final.output_text], [response.id, "streamed żółć 🚀"]);
});
console.log(`${passed} passed, ${failed} failed`);
