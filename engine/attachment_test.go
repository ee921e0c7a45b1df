package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// TestAContextShowsWhatAModelIsShownOfAttachments shows an image in all formats, and then one that is lost.
func TestAContextShowsWhatAModelIsShownOfAttachments(t *testing.T) {
	objects := storetest.NewObjects()
	h := newTurnHarnessOver(t, continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k(), MaxInlinePart: 1, Objects: objects}))
	var image continuo.Content
	if err := json.Unmarshal([]byte(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]`), &image); err != nil {
		t.Fatal(err)
	}
	close(h.model.open)
	ask := request("s", "")
	ask.Message = image
	h.finish(h.begin(ask))
	conversation, err := h.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	show := func(format engine.Format) (string, *window.Plan) {
		t.Helper()
		shown, err := h.Contexts.Build(t.Context(), conversation, engine.ContextRequest{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		all, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		return string(all), shown.Plan
	}
	for format, want := range map[engine.Format]string{
		engine.FormatOpenAI:     `"url":"data:image/png;base64,iVBORw0KGgo="`,
		engine.FormatAnthropic:  `"media_type":"image/png","data":"iVBORw0KGgo="`,
		engine.FormatTranscript: `[image_url]`,
	} {
		missing := 0
		if format == engine.FormatTranscript { // an image is only named in a text, and the plan says so
			missing = 1
		}
		if got, plan := show(format); !strings.Contains(got, want) || len(plan.Missing) != missing {
			t.Errorf("%s: %s", format, got)
		}
	}
	for info, err := range objects.Objects(t.Context(), "") {
		if err == nil {
			err = objects.DeleteObject(t.Context(), info.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []engine.Format{engine.FormatOpenAI, engine.FormatAnthropic} {
		got, plan := show(format)
		if !strings.Contains(got, "[image_url: left out, because the attachment att_") || !strings.Contains(got, `"problem":"gone"`) || len(plan.Missing) != 1 {
			t.Errorf("%s: %s", format, got)
		}
	}
	if strings.Contains(h.logs.String(), "attachment_missing") {
		t.Errorf("a turn logged what was not missing from it: %s", h.logs)
	}
	h.finish(h.begin(request("s", "And now?")))
	if !strings.Contains(h.logs.String(), `"msg":"attachment_missing"`) || !strings.Contains(h.logs.String(), "put it back from a backup") {
		t.Errorf("the log does not tell of the attachment: %s", h.logs)
	}
}
