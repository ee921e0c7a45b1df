package request

import (
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// jsonSchema translates a schema in OpenAPI's form, as Gemini's API has it, to JSON Schema: the types in lower case, and
// nullable as a type. A value that is no such schema is returned as it is.
func jsonSchema(schema json.RawMessage) json.RawMessage {
	object, err := rawjson.ParseObject(schema)
	if err != nil {
		return schema
	}
	var translated rawjson.Object
	for _, field := range object {
		switch value := field.Value; field.Key {
		case "type":
			if kind, ok := rawjson.String(value); ok {
				value = rawjson.MustMarshal(strings.ToLower(kind))
				if string(object.Get("nullable")) == "true" {
					value = rawjson.MustMarshal([]string{strings.ToLower(kind), "null"})
				}
			}
			translated.Set("type", value)
		case "nullable", "propertyOrdering":
		case "items":
			translated.Set("items", jsonSchema(value))
		case "anyOf":
			var alternatives []json.RawMessage
			if json.Unmarshal(value, &alternatives) != nil {
				translated.Set("anyOf", value)
				continue
			}
			for i := range alternatives {
				alternatives[i] = jsonSchema(alternatives[i])
			}
			translated.Set("anyOf", rawjson.MustMarshal(alternatives))
		case "properties":
			properties, err := rawjson.ParseObject(value)
			if err != nil {
				translated.Set("properties", value)
				continue
			}
			for i := range properties {
				properties[i].Value = jsonSchema(properties[i].Value)
			}
			translated.Set("properties", properties.Raw())
		default: // minItems and similar are strings in OpenAPI's form
			if number, ok := rawjson.String(value); ok && json.Valid([]byte(number)) && strings.HasPrefix(field.Key, "m") {
				value = json.RawMessage(number)
			}
			translated.Set(field.Key, value)
		}
	}
	return translated.Raw()
}
