package sqlite

import (
	"bytes"
	"encoding/binary"
	"time"
)

// SQLite overwrites what it deletes (secure_delete), but not the copies that it leaves where it has moved rows from one page to
// another: the space between a page's pointers to its rows and its first row is used again later, and not cleared. So after
// each removal the writer clears this space in all pages, some at a time between other writes.
const (
	selectPages = `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size, pragma_auto_vacuum WHERE auto_vacuum = 0`
	selectPage  = `SELECT data FROM sqlite_dbpage WHERE pgno = ?`
	updatePage  = `UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`

	// pagesAtOnce is how many pages are looked at between two writes.
	pagesAtOnce = 64
	// maxWiped is how many pages a file has at most that is cleared: in a larger one the first byte of a page may be part of the
	// number of another page, and does not say what the page is.
	maxWiped = 1<<25 - 1
	// wipeRest is how many times as long as a pass over the file the writer rests before the next one: where conversations are
	// deleted all the time, passes take a twentieth of a processor.
	wipeRest = 19
)

// wiping is how far a pass over the file is.
type wiping struct {
	from  int64         // the page that is looked at next; 0: the pass is done
	again bool          // something was removed since it began
	took  time.Duration // so far
	due   time.Time     // when it may begin
}

// begin notes that something was removed.
func (w *wiping) begin() {
	w.again = w.from > 1
	w.from = max(w.from, 1)
}

func (w *wiping) isDue() bool { return w.from > 1 || w.from == 1 && !time.Now().Before(w.due) }

// wait is for a pass that is not due yet; without one it waits for ever.
func (w *wiping) wait() <-chan time.Time {
	if w.from == 0 {
		return nil
	}
	return time.After(time.Until(w.due))
}

// end notes that a pass is done.
func (w *wiping) end() {
	*w = wiping{due: time.Now().Add(wipeRest * w.took), again: w.again}
	if w.again {
		w.again, w.from = false, 1
	}
}

// wipe clears the unused space of some pages. A failure is left to the next removal.
func (w *writer) wipe() {
	began := time.Now()
	var pages, size int64
	err := w.conn.row(selectPages, nil, &pages, &size)
	last := min(w.wiping.from+pagesAtOnce-1, pages)
	if err == nil && pages <= maxWiped {
		err = w.wipePages(w.wiping.from, last)
	}
	w.wiping.from = last + 1
	w.wiping.took += time.Since(began)
	if err != nil || last >= pages || pages > maxWiped {
		w.wiping.end()
	}
}

// finishWiping clears the rest before the store is closed.
func (w *writer) finishWiping() {
	for w.wiping.from > 0 {
		w.wipe()
	}
	if w.conn.residue {
		w.truncateLog()
	}
}

func (w *writer) wipePages(from, to int64) error {
	var dirty []int64
	for number := from; number <= to; number++ {
		page, err := w.page(number)
		if err != nil {
			return err
		}
		if unused := unusedOf(page, number == 1); len(bytes.Trim(unused, "\x00")) > 0 {
			dirty = append(dirty, number)
		}
	}
	if len(dirty) == 0 {
		return nil
	}
	err := w.conn.transact(func() error {
		for _, number := range dirty {
			page, err := w.page(number)
			if err != nil {
				return err
			}
			page = bytes.Clone(page)
			clear(unusedOf(page, number == 1))
			if _, err := w.conn.exec(updatePage, page, number); err != nil {
				return err
			}
		}
		return nil
	})
	w.conn.residue = w.conn.residue || err == nil // the log has the pages as they were
	return err
}

func (w *writer) page(number int64) (page []byte, err error) {
	err = w.conn.row(selectPage, []any{number}, &page)
	return page, err
}

// unusedOf is the space of a page between the pointers to its cells and the first cell; nil of a page that is not part of a
// table or an index. The file format says where they are: https://www.sqlite.org/fileformat2.html#b_tree_pages.
func unusedOf(page []byte, isFirst bool) []byte {
	header := 0
	if isFirst {
		header = 100
	}
	if len(page) < header+12 {
		return nil
	}
	pointers := header + 8
	switch page[header] {
	case 2, 5: // interior pages have the number of another page
		pointers += 4
	case 10, 13:
	default:
		return nil
	}
	begin := pointers + 2*int(binary.BigEndian.Uint16(page[header+3:]))
	end := int(binary.BigEndian.Uint16(page[header+5:]))
	if end == 0 {
		end = 1 << 16
	}
	if begin > end || end > len(page) {
		return nil
	}
	return page[begin:end]
}
