package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	wire "github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// read yields the upstream's answer, as events or as JSON.
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
			return answer.end(response)
		case err == io.EOF:
			return response.Unfinished()
		case err != nil:
			return response.ReadFailed(err)
		case len(bytes.TrimSpace(event.Data)) == 0:
			continue // a keep-alive
		case answer.finish != "" && !mayFollowEnd(event.Data): // nothing else belongs to the answer after its end
			response.DropWire()
			return answer.end(response)
		case string(bytes.TrimSpace(event.Data)) == "[DONE]": // as some proxies end every stream
			return response.Unfinished()
		}
		if err := readEvent(response, answer, event); err != nil {
			return err
		}
	}
	return nil
}

// mayFollowEnd reports whether a piece is one that comes after the end of the first candidate: the usage, or a part of
// another candidate.
func mayFollowEnd(data []byte) bool {
	var piece wire.Response
	return json.Unmarshal(data, &piece) == nil && rawjson.IsNull(piece.Error) &&
		!slices.ContainsFunc(piece.Candidates, func(c wire.Candidate) bool { return c.Index == 0 })
}

func readEvent(response *upstream.Response, answer *answer, event sse.Event) error {
	var piece wire.Response
	err := json.Unmarshal(event.Data, &piece)
	if !rawjson.IsNull(piece.Error) || err == nil && event.Type == "error" {
		if failure, ok := response.Failed(event.Data); ok {
			return failure
		}
	}
	if err == nil {
		err = answer.add(response, &piece)
	}
	switch {
	case err == nil:
		return nil
	case isFailure(err):
		return err
	case answer.finish != "":
		return nil
	case event.Cut:
		return response.Unfinished()
	}
	return response.Malformed(event.Data, err)
}

// readJSON reads an answer that did not come as events: one piece, or a list of them.
func readJSON(response *upstream.Response, answer *answer) error {
	var pieces wire.Answers
	data, err := response.JSON(&pieces)
	if err != nil {
		return err
	}
	for i := range pieces {
		if !rawjson.IsNull(pieces[i].Error) {
			if failure, ok := response.Failed(rawjson.MustMarshal(pieces[i])); ok {
				return failure
			}
		}
		if err := answer.add(response, &pieces[i]); isFailure(err) {
			return err
		} else if err != nil {
			return response.Malformed(data, err)
		}
	}
	if answer.finish == "" {
		if failure, ok := response.Failed(data); ok {
			return failure
		}
		return response.Malformed(data, errors.New("there is no finishReason"))
	}
	return answer.end(response)
}
