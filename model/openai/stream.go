package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// read yields the upstream's answer, streamed or not.
func read(response *upstream.Response, answer *answer) error {
	isJSON, err := response.IsJSON()
	if err != nil {
		return err
	}
	if isJSON {
		return readJSON(response, answer)
	}
	return readEvents(response, answer)
}

// readEvents reads a stream up to its end. After a finish reason the answer is complete, and later errors are
// ignored.
func readEvents(response *upstream.Response, answer *answer) error {
	events := response.Events()
	for !answer.Stopped {
		answer.YieldWire()
		event, err := events.Next()
		switch {
		case err != nil && answer.finish != "":
			return answer.end(response)
		case err == io.EOF:
			return response.Unfinished()
		case err != nil:
			return response.ReadFailed(err)
		case len(bytes.TrimSpace(event.Data)) == 0:
			continue // a keep-alive
		case string(bytes.TrimSpace(event.Data)) == openaichat.Done:
			if answer.finish == "" {
				return response.Unfinished()
			}
			if err := answer.end(response); err != nil {
				return err
			}
			response.Drain()
			return nil
		}
		if err := readEvent(response, answer, event); err != nil {
			return err
		}
	}
	return nil
}

func readEvent(response *upstream.Response, answer *answer, event sse.Event) error {
	var chunk openaichat.Chunk
	err := json.Unmarshal(event.Data, &chunk)
	if event.Type == "error" || !rawjson.IsNull(chunk.Error) || chunk.Choices == nil {
		if failure, ok := response.Failed(event.Data); ok {
			return failure
		}
	}
	switch {
	case err != nil && answer.finish != "":
		return nil
	case err != nil && event.Cut:
		return response.Unfinished()
	case err != nil:
		return response.Malformed(event.Data, err)
	}
	answer.addModel(chunk.Model)
	answer.addUsage(chunk.Usage)
	for _, choice := range chunk.Choices {
		if choice.Index == 0 {
			answer.addMessage(choice.Delta)
			answer.addUsage(choice.Usage)
			answer.addFinish(choice.FinishReason)
		}
	}
	return nil
}

// readJSON reads an answer that was not streamed.
func readJSON(response *upstream.Response, answer *answer) error {
	var whole openaichat.Response
	data, err := response.JSON(&whole)
	if err != nil {
		return err
	}
	if len(whole.Choices) == 0 {
		if failure, ok := response.Failed(data); ok {
			return failure
		}
		return response.Malformed(data, errors.New("there are no choices"))
	}
	answer.addModel(whole.Model)
	answer.addUsage(whole.Usage)
	for _, choice := range whole.Choices {
		if choice.Index == 0 {
			for i := range choice.Message.ToolCalls {
				choice.Message.ToolCalls[i].Index = &i
			}
			answer.addMessage(choice.Message)
			answer.addUsage(choice.Usage)
			answer.addFinish(choice.FinishReason)
		}
	}
	if answer.finish == "" { // its JSON is complete, so the answer is too
		answer.finish = "stop"
	}
	return answer.end(response)
}
