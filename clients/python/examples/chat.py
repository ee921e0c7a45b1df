"""A conversation, live and read again. Run it beside a server: continuo serve."""

import os

from continuo_client import Continuo, ContinuoError

continuo = Continuo(os.environ.get("CONTINUO_BASE_URL", "http://127.0.0.1:8787"), os.environ.get("CONTINUO_KEY"))

answer = continuo.chat({"message": "My dog is called Rex.", "session_id": "dog"})
print("conversation:", answer["conversation_id"].startswith("conv_"))

# The same as a stream: a broken connection is connected again, and no event is lost.
text = ""
for event in continuo.chat_stream({"message": "What is my dog called?", "session_id": "dog"}):
    if event["event"] == "delta":
        text += event["data"]["text"]
    elif event["event"] == "done":
        print("finished:", event["data"]["finish_reason"], text == event["data"]["response"])
    elif event["event"] == "error":
        raise SystemExit(event["data"]["error"]["message"])
print("it knows:", "Rex" in text)

for entry in continuo.list_entries("dog")["data"]:
    print(entry["seq"], entry["role"])
found = continuo.search("dog called", limit=5)
print("found:", len(found["data"]) > 0)

try:
    continuo.get_conversation("cat")
except ContinuoError as error:
    print("refused:", error.status, error.code)
