package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/continuo-log/continuo/internal/sse"
	wire "github.com/continuo-log/continuo/internal/wire/anthropic"
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
	events := response.Events()
	for !answer.Stopped {
		answer.YieldWire()
		event, err := events.Next()
		switch {
		case err != nil && answer.finish != "":
			answer.end() // the answer is complete, only its message_stop is missing
			return nil
		case err == io.EOF:
			return response.Unfinished()
		case err != nil:
			return response.ReadFailed(err)
		case len(bytes.TrimSpace(event.Data)) == 0:
			continue // a keep-alive
		case string(bytes.TrimSpace(event.Data)) == "[DONE]": // as some proxies end every stream
			if answer.finish == "" {
				return response.Unfinished()
			}
			response.DropWire()
			answer.end()
			return nil
		}
		over, err := readEvent(response, answer, event)
		if err != nil {
			return err
		}
		if over {
			answer.end()
			response.Drain()
			return nil
		}
	}
	return nil
}

// readEvent reads one event; over reports whether it was the last.
func readEvent(response *upstream.Response, answer *answer, event sse.Event) (over bool, err error) {
	var data wire.Event
	err = json.Unmarshal(event.Data, &data)
	if err != nil && isUnknown(event.Data) {
		return false, nil
	}
	if event.Type == wire.EventError || data.Type == wire.EventError {
		if failure, ok := response.Failed(event.Data); ok {
			return false, failure
		}
	}
	if err == nil && data.Type == wire.EventMessageStop {
		if answer.finish == "" {
			return false, response.Unfinished()
		}
		return true, nil
	}
	if err == nil {
		err = answer.add(&data)
	}
	switch {
	case err != nil && answer.finish != "":
		return false, nil
	case err != nil && event.Cut:
		return false, response.Unfinished()
	case err != nil:
		return false, response.Malformed(event.Data, err)
	}
	return false, nil
}

// isUnknown reports whether an event has an unknown type, which the client must ignore.
func isUnknown(data []byte) bool {
	var event struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &event) != nil {
		return false
	}
	switch event.Type {
	case wire.EventMessageStart, wire.EventContentBlockStart, wire.EventContentBlockDelta, wire.EventContentBlockStop,
		wire.EventMessageDelta, wire.EventMessageStop, wire.EventPing, wire.EventError, "":
		return false
	}
	return true
}

// readJSON reads an answer that was not streamed.
func readJSON(response *upstream.Response, answer *answer) error {
	var whole wire.Response
	data, err := response.JSON(&whole)
	if err != nil {
		return err
	}
	if whole.Content == nil {
		if failure, ok := response.Failed(data); ok {
			return failure
		}
		return response.Malformed(data, errors.New("there is no content"))
	}
	if err := answer.addResponse(&whole); err != nil {
		return response.Malformed(data, err)
	}
	answer.end()
	return nil
}
