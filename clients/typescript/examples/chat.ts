// A conversation, live and read again. Run it beside a server: continuo serve
import { Continuo, ContinuoError } from "continuo-client";

const continuo = new Continuo({ baseUrl: process.env.CONTINUO_BASE_URL, key: process.env.CONTINUO_KEY });

const answer = await continuo.chat({ message: "My dog is called Rex.", session_id: "dog" });
console.log("conversation:", answer.conversation_id.startsWith("conv_"));

// The same as a stream: a broken connection is connected again, and no event is lost.
let text = "";
for await (const event of continuo.chatStream({ message: "What is my dog called?", session_id: "dog" })) {
  switch (event.event) {
    case "delta":
      text += event.data.text;
      break;
    case "done":
      console.log("finished:", event.data.finish_reason, text === event.data.response);
      break;
    case "error":
      throw new Error(event.data.error.message);
  }
}
console.log("it knows:", text.includes("Rex"));

for (const entry of (await continuo.listEntries("dog")).data) {
  console.log(entry.seq, entry.role);
}
const found = await continuo.search("dog called", { limit: 5 });
console.log("found:", found.data.length > 0);

try {
  await continuo.getConversation("cat");
} catch (error) {
  if (!(error instanceof ContinuoError)) throw error;
  console.log("refused:", error.status, error.code);
}
