package gemini_test

import (
	"flag"
	"net/http"
	"testing"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/modeltest"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata expect")

func options() modeltest.Options {
	return modeltest.Options{
		Folder: "testdata", Update: *update,
		New: func(baseURL, key string, client *http.Client) model.Model {
			return gemini.New(gemini.Options{BaseURL: baseURL, APIKey: key, Name: "model-under-test", HTTPClient: client})
		},
	}
}

func TestModel(t *testing.T) { modeltest.Run(t, options()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, options()) }
