package storetest

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/object/objecttest"
)

func TestObjectsInMemoryPassTheirSuite(t *testing.T) {
	objecttest.Run(t, func(*testing.T) continuo.ObjectStore { return NewObjects() })
}
