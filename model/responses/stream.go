package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/continuo-log/continuo/internal/sse"
	wire "github.com/continuo-log/continuo/internal/wire/responses"
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
		case err == io.EOF:
			return response.Unfinished()
		case err != nil:
			return response.ReadFailed(err)
		case len(bytes.TrimSpace(event.Data)) == 0:
			continue // a keep-alive
		case string(bytes.TrimSpace(event.Data)) == wire.Done:
			return response.Unfinished()
		}
		over, err := readEvent(response, answer, event)
		if err != nil {
			return err
		}
		if over {
			answer.YieldWire()
			if last, ok := response.DrainEvent(); ok && string(bytes.TrimSpace(last.Data)) == wire.Done {
				answer.YieldWire()
			}
			response.Drain()
			return nil
		}
	}
	return nil
}

// readEvent reads one event; over reports whether it was the last.
func readEvent(response *upstream.Response, answer *answer, event sse.Event) (over bool, err error) {
	var kind struct {
		Type string `json:"type"`
	}
	err = json.Unmarshal(event.Data, &kind)
	if kind.Type == "" {
		kind.Type = event.Type
	}
	if err == nil && !wire.IsKnown(kind.Type) {
		if failure, ok := response.Failed(event.Data); ok && kind.Type == "" {
			return false, failure
		}
		return false, nil
	}
	var data wire.Event
	if err == nil {
		err = json.Unmarshal(event.Data, &data)
	}
	if kind.Type == wire.EventError || event.Type == wire.EventError {
		if failure, ok := response.Failed(event.Data); ok {
			return false, failure
		}
		return false, response.Failure("it sent an error without a message")
	}
	if err == nil {
		data.Type = kind.Type
		switch data.Type {
		case wire.EventCompleted, wire.EventIncomplete, wire.EventFailed:
			return true, answer.finish(response, data.Response)
		}
		err = answer.add(&data)
	}
	switch {
	case err != nil && event.Cut:
		return false, response.Unfinished()
	case err != nil:
		return false, response.Malformed(event.Data, err)
	}
	return false, nil
}

// readJSON reads an answer that was not streamed.
func readJSON(response *upstream.Response, answer *answer) error {
	var whole wire.Response
	data, err := response.JSON(&whole)
	if err != nil {
		return err
	}
	if whole.Status == "" && whole.Output == nil {
		if failure, ok := response.Failed(data); ok {
			return failure
		}
		return response.Malformed(data, errors.New("there is no output"))
	}
	return answer.finish(response, data)
}
