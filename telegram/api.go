package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultURL is where Telegram serves the Bot API.
const DefaultURL = "https://api.telegram.org"

const (
	callTime = 20 * time.Second // time limit of a call, without the time of a long poll
	maxReply = 8 << 20          // bytes of an answer
	maxBatch = 20               // updates of one answer, each with at most some 100 KB of quoted messages
)

// client calls the Bot API as one bot. Its errors never contain the bot's token.
type client struct {
	http  *http.Client
	base  string
	token string
}

// newClient makes a client that follows no redirects: an error of one would contain the URL, and the URL the token.
func newClient(transport *http.Client, base, token string) client {
	own := *transport
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Timeout = 0
	return client{http: &own, base: strings.TrimSuffix(base, "/"), token: token}
}

// apiError is an error response to a call, from Telegram or from a proxy before it.
type apiError struct {
	Method      string
	Code        int
	Description string
	RetryAfter  time.Duration // of 429; 0 where the response does not say
	MigrateTo   int64         // the id of the supergroup that the chat has become; 0 for none
}

func (e *apiError) Error() string { return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Description) }

// reply is the envelope of every response.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter      int64 `json:"retry_after"` // seconds
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call calls a method, within limit. result may be nil.
func (c client) call(ctx context.Context, method string, limit time.Duration, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", method, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/bot"+c.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: the URL of the Bot API is not one", method)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return c.failed(method, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err != nil {
		return c.failed(method, err)
	}
	if len(data) > maxReply {
		return fmt.Errorf("%s: the answer has more than %d bytes", method, maxReply)
	}
	return c.read(method, response.StatusCode, data, result)
}

// failed is the error of a call without a response. The token is removed from it, wherever it occurs.
func (c client) failed(method string, err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the outer error contains the URL
	}
	if strings.Contains(err.Error(), c.token) {
		err = errors.New(c.redact(err.Error()))
	}
	return fmt.Errorf("%s: %w", method, err)
}

func (c client) redact(text string) string { return strings.ReplaceAll(text, c.token, "TOKEN") }

// read decodes a response.
func (c client) read(method string, status int, data []byte, result any) error {
	var r reply
	if err := json.Unmarshal(data, &r); err != nil || !r.OK && r.ErrorCode == 0 {
		if status >= http.StatusMultipleChoices {
			return &apiError{Method: method, Code: status, Description: http.StatusText(status)}
		}
		return fmt.Errorf("%s: the answer is not one of the Bot API", method)
	}
	if !r.OK {
		return &apiError{
			Method: method, Code: r.ErrorCode, Description: oneLine(c.redact(r.Description), 200),
			RetryAfter: time.Duration(r.Parameters.RetryAfter) * time.Second, MigrateTo: r.Parameters.MigrateToChatID,
		}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return fmt.Errorf("%s: the result cannot be read", method)
	}
	return nil
}

// me fetches the bot's own account.
func (c client) me(ctx context.Context) (account, error) {
	var bot account
	return bot, c.call(ctx, "getMe", callTime, struct{}{}, &bot)
}

// updates waits up to wait for updates from offset on, and confirms those before it. Offset 0 confirms none.
func (c client) updates(ctx context.Context, offset int64, wait time.Duration) ([]update, error) {
	params := struct {
		Offset  int64    `json:"offset,omitempty"`
		Limit   int      `json:"limit"`
		Timeout int      `json:"timeout"` // seconds
		Allowed []string `json:"allowed_updates"`
	}{offset, maxBatch, int(wait / time.Second), allowedUpdates()}
	var raw []json.RawMessage
	if err := c.call(ctx, "getUpdates", wait+callTime, params, &raw); err != nil {
		return nil, err
	}
	found := make([]update, len(raw))
	for i, one := range raw {
		var err error
		if found[i], err = readUpdate(one); err != nil {
			return nil, fmt.Errorf("getUpdates: %w", err)
		}
	}
	return found, nil
}

// allowedUpdates are the kinds of updates that the bot requests.
func allowedUpdates() []string { return []string{"message", "edited_message"} }

// outgoing is a message to a chat.
type outgoing struct {
	ChatID    int64       `json:"chat_id"`
	Text      string      `json:"text"`
	ParseMode string      `json:"parse_mode,omitempty"`
	Preview   linkPreview `json:"link_preview_options"`
}

// linkPreview disables the previews of links: for a preview, Telegram's servers would open the links of an answer.
type linkPreview struct {
	Disabled bool `json:"is_disabled"`
}

func (c client) send(ctx context.Context, chatID int64, text, parseMode string) error {
	return c.call(ctx, "sendMessage", callTime, outgoing{chatID, text, parseMode, linkPreview{true}}, nil)
}

func (c client) typing(ctx context.Context, chatID int64) error {
	return c.call(ctx, "sendChatAction", callTime, map[string]any{"chat_id": chatID, "action": "typing"}, nil)
}

// setCommands sets the commands that Telegram offers to people in the chat.
func (c client) setCommands(ctx context.Context, chatID int64, offered []offeredCommand) error {
	return c.call(ctx, "setMyCommands", callTime, map[string]any{
		"commands": offered, "scope": map[string]any{"type": "chat", "chat_id": chatID},
	}, nil)
}

// chat fetches a chat that the bot can see.
func (c client) chat(ctx context.Context, id int64) (found chat, err error) {
	return found, c.call(ctx, "getChat", callTime, map[string]any{"chat_id": id}, &found)
}

// membership is an account's membership in a group: a ChatMember.
type membership struct {
	Status   string `json:"status"`
	IsMember bool   `json:"is_member"`         // only of a restricted member
	MaySend  bool   `json:"can_send_messages"` // only of a restricted member
}

func (s membership) isAdmin() bool { return s.Status == "creator" || s.Status == "administrator" }
func (s membership) isIn() bool {
	return s.isAdmin() || s.Status == "member" || s.Status == "restricted" && s.IsMember
}
func (s membership) maySend() bool { return s.Status != "restricted" || s.MaySend }

// member fetches an account's membership in a group.
func (c client) member(ctx context.Context, chatID, userID int64) (found membership, err error) {
	return found, c.call(ctx, "getChatMember", callTime, map[string]any{"chat_id": chatID, "user_id": userID}, &found)
}

// webhookInfo is the address to which Telegram posts a bot's updates, and the state of its deliveries.
type webhookInfo struct {
	URL       string `json:"url"` // "" for none
	Pending   int    `json:"pending_update_count"`
	LastError string `json:"last_error_message"`
}

func (c client) webhook(ctx context.Context) (found webhookInfo, err error) {
	return found, c.call(ctx, "getWebhookInfo", callTime, struct{}{}, &found)
}

func (c client) deleteWebhook(ctx context.Context) error {
	return c.call(ctx, "deleteWebhook", callTime, struct{}{}, nil)
}

// setWebhook makes Telegram post updates to an address, one at a time, so that they keep their order.
func (c client) setWebhook(ctx context.Context, address, secret string) error {
	return c.call(ctx, "setWebhook", callTime, map[string]any{
		"url": address, "secret_token": secret, "max_connections": 1, "allowed_updates": allowedUpdates(),
	}, nil)
}
