package model_test

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

func TestAModelWithoutEncryptedReasoningIsAskedWithoutIt(t *testing.T) {
	refusal := &continuo.TurnError{Reason: continuo.ReasonUpstream, Message: "Encrypted content is not supported with this model."}
	speaker := model.NewSpeaker(model.Dialect{}, model.Fixed{Roles: true})
	if used := speaker.Dialect(); used.NoEncryptedReasoning || !speaker.Learn(used, refusal) {
		t.Fatalf("the dialect %+v is not changed by the refusal", used)
	}
	used := speaker.Dialect()
	if !used.NoEncryptedReasoning {
		t.Errorf("the next dialect is %+v", used)
	}
	if speaker.Learn(used, refusal) {
		t.Error("the refusal is retried twice")
	}
	if !model.IsFormatRefusal(&model.Error{Reason: continuo.ReasonUpstream, Message: refusal.Message}) {
		t.Error("the same request is retried")
	}
}
