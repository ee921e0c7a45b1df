package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// jsonLines is the media type of Continuo's own format.
const jsonLines = "application/jsonl"

// importConversation makes a conversation from a list of messages or an export. Whatever the log does not accept
// unchanged is repaired; that includes text with lone surrogates, which is therefore accepted here.
func (s *server) importConversation(w http.ResponseWriter, r *http.Request) error {
	once, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	document, title, err := s.readImport(w, r)
	if err != nil {
		return err
	}
	imported, err := s.carryOutImport(r, document, once)
	if err != nil {
		return err
	}
	if title != nil && imported.Existed && imported.Conversation.Title != *title {
		imported.Conversation, err = s.engine.Log.Update(r.Context(), imported.Conversation.ID, continuo.ConversationChange{Title: title})
		if err != nil {
			return err
		}
	}
	status := http.StatusCreated
	if imported.Existed {
		status = http.StatusOK
	}
	return writeJSON(w, status, struct {
		Conversation continuo.Conversation `json:"conversation"`
		Existed      bool                  `json:"existed"`
		Added        int                   `json:"added"`
		Entries      int                   `json:"entries"`
		Repairs      []interchange.Repair  `json:"repairs"`
		Format       string                `json:"format"`
	}{imported.Conversation, imported.Existed, imported.Added, imported.Entries, append([]interchange.Repair{}, imported.Repairs...), imported.Format})
}

// carryOutImport imports a document under its own key, else under the request's Idempotency-Key, if it has one.
func (s *server) carryOutImport(r *http.Request, document interchange.Document, once string) (imported engine.Imported, err error) {
	if once != "" && document.Conversation.Key == "" {
		imported, err = s.engine.Conversations.ImportOnce(r.Context(), scopeOf(r), document, once)
	} else {
		imported, err = s.engine.Conversations.Import(r.Context(), scopeOf(r), document)
	}
	switch {
	case errors.Is(err, continuo.ErrKeyReused):
		return imported, err
	case errors.Is(err, continuo.ErrExists), errors.Is(err, continuo.ErrOtherUser):
		return imported, at("key", err)
	}
	return imported, at("messages", err)
}

// readImport reads the body of an import into a document that a log accepts, and the title in it, if any. Only a key or
// an Idempotency-Key identifies a document that may have been imported before.
func (s *server) readImport(w http.ResponseWriter, r *http.Request) (document interchange.Document, title *string, err error) {
	if _, err := parseQuery(r); err != nil {
		return document, nil, err
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == jsonLines {
		document, err = s.readExport(w, r)
		return document, nil, err
	}
	body, err := s.readRaw(w, r)
	if err != nil {
		return document, nil, err
	}
	var request struct {
		Messages json.RawMessage `json:"messages"`
		Title    *string         `json:"title"`
		Format   string          `json:"format"`
		Key      setting         `json:"key"`
		UserID   setting         `json:"user_id"`
	}
	if err := decode(body, &request); err != nil {
		return document, nil, err
	}
	if rawjson.IsNull(request.Messages) || request.Messages[0] != '[' {
		return document, nil, refuse("messages", "messages must be a list of messages")
	}
	if err := (conversationFields{Title: request.Title, Key: request.Key, UserID: request.UserID}).check(); err != nil {
		return document, nil, err
	}
	if _, err := scopeOf(r).Owner(request.UserID.text()); err != nil {
		return document, nil, at("user_id", err)
	}
	if err := oneOf("format", request.Format, interchange.FormatOpenAI, interchange.FormatOpenAILegacy,
		interchange.FormatAnthropic, interchange.FormatUnified, interchange.FormatPipeline); err != nil {
		return document, nil, err
	}
	document, err = interchange.Messages(request.Messages, request.Format)
	if request.Title != nil {
		document.Conversation.Title = *request.Title
	}
	document.Conversation.Key, document.Conversation.UserID = request.Key.text(), request.UserID.text()
	return document, request.Title, at("messages", err)
}

// readExport reads a body in Continuo's own format, as an export writes it: one conversation, under its key.
func (s *server) readExport(w http.ResponseWriter, r *http.Request) (interchange.Document, error) {
	body, err := s.readRaw(w, r, jsonLines)
	if err != nil {
		return interchange.Document{}, err
	}
	var documents []interchange.Document
	for document, err := range interchange.Read("the body", bytes.NewReader(body), interchange.Options{}) {
		if err != nil {
			return interchange.Document{}, err
		}
		documents = append(documents, document)
	}
	if len(documents) != 1 || documents[0].Format != interchange.FormatContinuo {
		return interchange.Document{}, refuse("", "the body must be one conversation as an export with format=continuo gives it; send a list of messages as application/json")
	}
	_, err = scopeOf(r).Owner(documents[0].Conversation.UserID)
	return documents[0], at("user_id", err)
}

// exportConversation writes a conversation, entry by entry.
func (s *server) exportConversation(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "format")
	if err != nil {
		return err
	}
	format := q.text("format")
	if format == "" {
		format = interchange.FormatContinuo
	}
	if err := oneOf("format", format, interchange.FormatContinuo, interchange.FormatOpenAI, interchange.FormatOpenAIJSONL, interchange.FormatSource); err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	contentType, extension := "application/json", ".json"
	if format == interchange.FormatContinuo || format == interchange.FormatOpenAIJSONL {
		contentType, extension = jsonLines, ".jsonl"
	}
	file := &download{response: w, contentType: contentType, name: conversation.ID + extension}
	err = interchange.Export(r.Context(), file, format, s.engine.Log, conversation)
	if err != nil && file.began {
		if r.Context().Err() == nil {
			s.logCause(w, r, &problem{Code: "export_broke_off", Cause: err})
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
