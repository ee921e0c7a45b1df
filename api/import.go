package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func (s *Service) importOperation() Operation {
	return define(Operation{
		ID: "importConversation", Method: "POST", Path: "/api/conversations/import", Tag: "conversations", Summary: "import a list of messages as a conversation",
		Body: []Media{{Type: JSON, Schema: reflect.TypeFor[ImportRequest]()}, {Type: JSONLines}}, AnyText: true,
		Answers: answers(
			created("The new conversation, and what had to be repaired."),
			ok("The list was imported before; the answer is that of the first import."),
			failing(http.StatusConflict, "The list is not the one that the key (`exists`) or the `Idempotency-Key` (`idempotency_conflict`) was used "+
				"with, or an entry was appended to the conversation before the list had gained messages."),
		),
	}, s.ImportConversation)
}

// ImportInput is a list of messages, or an export of Continuo's own, by its media type.
type ImportInput struct {
	Once
	Type string `header:"Content-Type" hidden:"true"`
	Body []byte `body:"raw"`

	document interchange.Document
	title    *string
}

// ImportRequest is a list of messages to import.
type ImportRequest struct {
	Messages json.RawMessage `json:"messages" type:"[]object"`
	Title    *string         `json:"title,omitempty" maxLength:"500"`
	// The form of the messages. By default it is recognised.
	Format string `json:"format,omitempty" enum:"openai,openai-legacy,anthropic,unified,pipeline"`
	// The conversation's key, by which a later import of the same list is known. Without it, and without an
	// `Idempotency-Key`, every import makes a conversation of its own, whatever the list says.
	Key Setting `json:"key,omitempty"`
	// The user that the conversation belongs to; empty or null for none.
	UserID Setting `json:"user_id,omitempty" doc:"maxLength=256"`
}

// maxTitle bounds a title, in Unicode characters.
const maxTitle = 500

// check refuses fields that no conversation can have. The format is checked last, by read.
func (r *ImportRequest) check() error {
	if rawjson.IsNull(r.Messages) || r.Messages[0] != '[' {
		return Refuse("messages", "messages must be a list of messages")
	}
	if r.Title != nil && utf8.RuneCountInString(*r.Title) > maxTitle {
		return Refuse("title", "title must have at most %d characters", maxTitle)
	}
	return (&ConversationFields{Key: r.Key, UserID: r.UserID}).Check()
}

// Imported says the result of an import.
type Imported struct {
	Conversation continuo.Conversation `json:"conversation"`
	// Whether a list had been imported under the key before.
	Existed bool `json:"existed"`
	// How many entries were added to a conversation that existed, because the list has more messages than before.
	Added int `json:"added"`
	// How many entries the list makes.
	Entries int                  `json:"entries"`
	Repairs []interchange.Repair `json:"repairs"`
	// The form in which the list was read.
	Format string `json:"format"`
}

// HTTPStatus tells a new conversation from one that existed.
func (i Imported) HTTPStatus() int {
	if i.Existed {
		return http.StatusOK
	}
	return http.StatusCreated
}

// ImportConversation makes a conversation from a list of messages or an export. Whatever the log does not accept unchanged
// is repaired; that includes text with lone surrogates, which is therefore accepted here.
//
// Imports all messages or none. What no log could show (a tool result without its call, a call without its result) is repaired, and
// every repair is reported. A list under a key that was imported before is found again, and only the messages that it has
// gained are added. An export (`format=continuo`) is sent as it is, one conversation as application/jsonl; it has the key
// that it had, and brings along what its recorded requests need to be shown again. Where neither the body nor the export
// names a key, an `Idempotency-Key` takes its place.
func (s *Service) ImportConversation(ctx context.Context, scope continuo.Scope, in ImportInput) (Imported, error) {
	if err := in.read(scope); err != nil {
		return Imported{}, err
	}
	imported, err := s.runImport(ctx, scope, in.document, string(in.Key))
	if err != nil {
		return Imported{}, err
	}
	if in.title != nil && imported.Existed && imported.Conversation.Title != *in.title {
		imported.Conversation, err = s.Engine.Conversations.Change(ctx, scope, imported.Conversation.ID, continuo.ConversationChange{Title: in.title})
	}
	return Imported{
		imported.Conversation, imported.Existed, imported.Added, imported.Entries,
		append([]interchange.Repair{}, imported.Repairs...), imported.Format,
	}, err
}

// runImport imports a document under its own key, else under the request's Idempotency-Key, if it has one.
func (s *Service) runImport(ctx context.Context, scope continuo.Scope, document interchange.Document, once string) (imported engine.Imported, err error) {
	if once != "" && document.Conversation.Key == "" {
		imported, err = s.Engine.Conversations.ImportOnce(ctx, scope, document, once)
	} else {
		imported, err = s.Engine.Conversations.Import(ctx, scope, document)
	}
	switch {
	case errors.Is(err, continuo.ErrKeyReused):
		return imported, err
	case errors.Is(err, continuo.ErrExists), errors.Is(err, continuo.ErrOtherUser):
		return imported, At("key", err)
	}
	return imported, At("messages", err)
}

// read reads the body into a document that a log accepts, and the title in it, if any. Only a key or an Idempotency-Key
// identifies a document that may have been imported before.
func (in *ImportInput) read(scope continuo.Scope) (err error) {
	if kind, _, _ := mime.ParseMediaType(in.Type); kind == JSONLines {
		return in.readExport(scope)
	}
	var request ImportRequest
	if err := decodeObject(in.Body, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	if _, err := scope.Owner(request.UserID.Text()); err != nil {
		return At("user_id", err)
	}
	if err := oneOf("format", request.Format, interchange.FormatOpenAI, interchange.FormatOpenAILegacy,
		interchange.FormatAnthropic, interchange.FormatUnified, interchange.FormatPipeline); err != nil {
		return err
	}
	in.document, err = interchange.Messages(request.Messages, request.Format)
	in.title = request.Title
	conversation := &in.document.Conversation
	if request.Title != nil {
		conversation.Title = *request.Title
	}
	conversation.Key, conversation.UserID = request.Key.Text(), request.UserID.Text()
	return At("messages", err)
}

// readExport reads a body in Continuo's own format, as an export writes it: one conversation, under its key.
func (in *ImportInput) readExport(scope continuo.Scope) error {
	var documents []interchange.Document
	for document, err := range interchange.Read("the body", bytes.NewReader(in.Body), interchange.Options{}) {
		if err != nil {
			return err
		}
		documents = append(documents, document)
	}
	if len(documents) != 1 || documents[0].Format != interchange.FormatContinuo {
		return Refuse("", "the body must be one conversation as an export with format=continuo gives it; send a list of messages as application/json")
	}
	in.document = documents[0]
	_, err := scope.Owner(in.document.Conversation.UserID)
	return At("user_id", err)
}
