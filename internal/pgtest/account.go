package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is the user that runs the programs: initdb and postgres refuse to run as root.
type account struct {
	user, group uint32
}

// unprivileged returns the account to run as, nil for our own.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the number of the account %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the group of the account %s: %w", name, err)
		}
		return &account{user: uint32(uid), group: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is neither an account postgres nor nobody: run the tests as another user")
}

// own makes the account the owner of a folder.
func (a *account) own(folder string) error {
	if a == nil {
		return nil
	}
	return os.Chown(folder, int(a.user), int(a.group))
}
