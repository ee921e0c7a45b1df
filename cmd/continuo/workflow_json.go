package main

import (
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// jsonText is a value as JSON on one line.
func jsonText(value any) string {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
