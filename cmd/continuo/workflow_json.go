package main

import (
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// jsonWords is a value as JSON on one line.
func jsonWords(value any) string {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
