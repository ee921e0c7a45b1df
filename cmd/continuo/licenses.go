package main

import "github.com/continuo-log/continuo/internal/notices"

type licensesCommand struct{}

func (licensesCommand) Help() string {
	return `Prints the licences and notices of all modules that this program contains, and of Go's standard library.

Examples:

    continuo licenses
    continuo licenses | grep '^== '`
}

// Run prints the notices.
func (licensesCommand) Run(a *app) error {
	a.print("%s", notices.Text())
	return nil
}
