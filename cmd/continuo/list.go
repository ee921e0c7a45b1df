package main

import "github.com/continuo-log/continuo/api"

// listing are the flags of commands that list.
type listing struct {
	Limit int  `default:"30" help:"How many to list at most; 0 for all."`
	JSON  bool `help:"Write JSON: {data, has_more, …}, as the API does."`
}

func (l *listing) check() error {
	if l.Limit < 0 {
		return usage("--limit %d: give 0 for all or a positive number", l.Limit)
	}
	return nil
}

// showList writes what was found, as JSON or as print does; more says that there is more than the limit. If nothing was
// found, none says so. No command continues a list, so that there is never a cursor.
func showList[T any](a *app, flags listing, found []T, more bool, none, print func()) error {
	return a.show(flags.JSON, api.List[T]{Data: append([]T{}, found...), HasMore: more}, func() {
		if len(found) == 0 {
			none()
			return
		}
		print()
		if more {
			a.note("There are more: --limit 0 lists all.")
		}
	})
}

// show writes a result, as JSON or as print does.
func (a *app) show(asJSON bool, result any, print func()) error {
	if asJSON {
		return a.json(result)
	}
	print()
	return nil
}

// pages collects the pages of a list, at most limit items (0: all), and reports whether there are more. next returns the
// page after the last item of the page before, nil at first; a page that is not full is the last one.
func pages[T any](limit, full int, next func(last *T) ([]T, error)) (found []T, more bool, err error) {
	found = []T{}
	var last *T
	for {
		page, err := next(last)
		if err != nil {
			return nil, false, err
		}
		found = append(found, page...)
		if limit > 0 && len(found) > limit {
			return found[:limit], true, nil
		}
		if len(page) < full {
			return found, false, nil
		}
		last = &page[len(page)-1]
	}
}
