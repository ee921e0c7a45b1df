package maintenance

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/fulltext/index"
)

// Store is everything that an engine stores, and that a copy must have. Package storetest tests all of it.
type Store interface {
	continuo.Store
	continuo.PrefixStore
	auth.KeyStore
	audit.Store
	RecordStore
	index.Store
}
