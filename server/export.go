package server

import (
	"net/http"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/interchange"
)

// exportConversation writes a conversation, entry by entry.
func (s *server) exportConversation(w http.ResponseWriter, r *http.Request, in api.ExportRequest) error {
	conversation, err := s.api.Open(r.Context(), scopeOf(r), in.ConversationPath)
	if err != nil {
		return err
	}
	format := in.Format
	contentType, extension := "application/json", ".json"
	if format == interchange.FormatContinuo || format == interchange.FormatOpenAIJSONL {
		contentType, extension = api.JSONLines, ".jsonl"
	}
	file := &download{response: w, contentType: contentType, name: conversation.ID + extension}
	err = s.engine.Conversations.Export(r.Context(), file, format, conversation)
	if err != nil && file.began {
		if r.Context().Err() == nil {
			s.logCause(w, r, &api.Problem{Code: "export_broke_off", Cause: err})
		}
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return err
}

// download is a file that is streamed while it is made. An error before its first byte can still be answered as an HTTP
// error.
type download struct {
	response          http.ResponseWriter
	contentType, name string
	began             bool
}

func (d *download) Write(data []byte) (int, error) {
	if !d.began {
		d.began = true
		d.response.Header().Set("Content-Type", d.contentType)
		d.response.Header().Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	}
	return d.response.Write(data)
}
