package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/object"
)

type storeCopyCommand struct {
	From        string `placeholder:"WHERE" help:"The source: an SQLite file or postgres://USER@HOST:PORT/DATABASE. Default: the store of the settings."`
	To          string `placeholder:"WHERE" required:"" help:"The destination, likewise; it is created if it does not exist."`
	Verify      bool   `help:"Only compare both, record by record, and write nothing; exit code 1 if they differ."`
	ObjectsFrom string `placeholder:"WHERE" help:"Where the objects of the source are. Default: as the settings say, or beside a file that --from names."`
	ObjectsTo   string `placeholder:"WHERE" help:"Copy the objects too: to a folder or s3://BUCKET. Default: they stay where they are."`
	Workers     int    `default:"8" help:"How many conversations are copied at once."`
	Yes         bool   `short:"y" help:"Do not ask, even where the destination would lose something."`
	JSON        bool   `help:"Write the report as JSON."`
}

func (storeCopyCommand) Help() string {
	return `Makes one store equal to another one: conversations with their entries, turns, idempotency records and forks, API keys, projects. Both can be read meanwhile, and the source can be written: changes are copied again, until a whole pass finds no difference. Then both sides have the same SHA-256. The copy can be stopped at any time, and the same command continues.

Data of the destination that the source does not have is removed; the command asks before that. The password of a database belongs in PGPASSWORD or ~/.pgpass, where other users do not see it. --set store.partitions=N divides the tables of a new database.

To move permanently: copy while the programs run, stop those that write, copy once more (that takes moments), set store.url or store.path to the new store, and start them.

Examples:

    continuo store copy --to postgres://continuo@db.example:5432/continuo
    continuo store copy --from postgres://continuo@db.example/continuo --to backup.db
    continuo store copy --to postgres://continuo@db.example/continuo --verify
    continuo store copy --from a.db --to b.db --objects-to s3://bucket`
}

// storeCopy is a copy in progress.
type storeCopy struct {
	*storeCopyCommand
	app              *app
	from, to         config.StoreConfig
	source, copy     maintenance.Store
	objects, objCopy *object.Bucket // nil: objects stay where they are
}

// copyReport is the result of a copy.
type copyReport struct {
	From string `json:"from"`
	To   string `json:"to"`
	maintenance.Copied
	Objects  int64   `json:"objects"` // copied
	Verified bool    `json:"verified"`
	Seconds  float64 `json:"seconds"`
}

// Run copies or compares.
func (c *storeCopyCommand) Run(ctx context.Context, a *app) error {
	ctx, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	run, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	defer run.close()
	if err := run.confirmLosses(ctx); err != nil {
		return err
	}
	report := copyReport{From: storeText(run.from), To: storeText(run.to), Verified: c.Verify}
	began := time.Now()
	err = run.all(ctx, &report)
	report.Seconds = time.Since(began).Seconds()
	switch {
	case err != nil && ctx.Err() != nil && c.Verify:
		return fmt.Errorf("stopped: %w", context.Canceled)
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("stopped: %w; what is copied stays, and the same command continues", context.Canceled)
	case err != nil && !c.Verify:
		return fmt.Errorf("%w; what is copied stays, and the same command continues", err)
	case err != nil:
		return err
	case c.JSON:
		return a.json(report)
	}
	run.print(&report)
	return nil
}

// open opens both sides.
func (c *storeCopyCommand) open(ctx context.Context, a *app) (run *storeCopy, err error) {
	if err := errors.Join(checkWhere("--from", c.From), checkWhere("--to", c.To)); err != nil {
		return nil, err
	}
	settings, err := a.loadSettings()
	if err != nil {
		return nil, err
	}
	run = &storeCopy{storeCopyCommand: c, app: a, from: settings.Store, to: storeAt(settings.Store, c.To)}
	objects := settings.Objects.Location
	if c.From != "" {
		run.from = storeAt(settings.Store, c.From)
		if run.from.URL == "" && !sameStore(run.from, settings.Store) {
			objects = c.From + ".objects"
		}
	}
	if c.ObjectsFrom != "" {
		objects = c.ObjectsFrom
	}
	switch {
	case c.Workers < 1 || c.Workers > 256:
		return nil, usage("--workers %d: give a number from 1 to 256", c.Workers)
	case sameStore(run.from, run.to):
		return nil, usage("--from and --to are the same store, %s", storeText(run.to))
	case c.ObjectsFrom != "" && c.ObjectsTo == "":
		return nil, usage("--objects-from needs --objects-to: where are the objects to go?")
	case c.ObjectsTo == objects:
		return nil, usage("--objects-to: the objects are at %s already", objects)
	}
	defer func() {
		if err != nil {
			run.close()
		}
	}()
	if run.source, _, err = openExisting(ctx, run.from); err != nil {
		return run, err
	}
	if run.copy, err = c.openCopy(ctx, run.to); err != nil || c.ObjectsTo == "" {
		return run, err
	}
	if run.objects, err = openObjects(ctx, config.ObjectsConfig{Location: objects}); err == nil {
		run.objCopy, err = openObjects(ctx, config.ObjectsConfig{Location: c.ObjectsTo})
	}
	return run, err
}

// openCopy opens the destination; for a comparison, it must exist.
func (c *storeCopyCommand) openCopy(ctx context.Context, at config.StoreConfig) (maintenance.Store, error) {
	open := openStore
	if c.Verify {
		open = openExisting
	}
	store, _, err := open(ctx, at)
	return store, err
}

// close closes what was opened; everything acknowledged is durable already.
func (r *storeCopy) close() {
	for _, store := range []maintenance.Store{r.source, r.copy} {
		if store != nil {
			_ = store.Close()
		}
	}
	for _, bucket := range []*object.Bucket{r.objects, r.objCopy} {
		if bucket != nil {
			_ = bucket.Close()
		}
	}
}

// confirmLosses asks for confirmation if the destination would lose data.
func (r *storeCopy) confirmLosses(ctx context.Context) error {
	if r.Verify || r.Yes {
		return nil
	}
	copier := maintenance.Copier{From: r.source, To: r.copy, Workers: r.Workers}
	losses, err := copier.Losses(ctx)
	if err != nil || !losses.Any() {
		return err
	}
	yes, err := r.app.ask(fmt.Sprintf("%s has %s that the source does not have and %s that changed there after a copy (such as %s): this copy would remove or overwrite them. Copy nevertheless?",
		storeText(r.to), term.Count(losses.Unknown, "conversation"), term.Number(losses.Newer), losses.Example))
	if err == nil && !yes {
		err = errors.New("nothing was copied")
	}
	return err
}

// all copies or compares everything. Objects come first, so that no entry of the copy refers to a missing one; the
// objects of entries that were added in the meantime come afterwards.
func (r *storeCopy) all(ctx context.Context, report *copyReport) (err error) {
	if r.Verify {
		report.Copied, err = r.records(ctx, "comparing", (*maintenance.Copier).Verify)
		return err
	}
	if err := r.copyObjects(ctx, report); err != nil {
		return err
	}
	if report.Copied, err = r.records(ctx, "copying", (*maintenance.Copier).Copy); err != nil {
		return err
	}
	if report.FromSHA256 != report.ToSHA256 {
		return fmt.Errorf("the copy has SHA-256 %s and the source %s: copy again", report.ToSHA256, report.FromSHA256)
	}
	return r.copyObjects(ctx, report)
}

func (r *storeCopy) records(ctx context.Context, label string, do func(*maintenance.Copier, context.Context) (maintenance.Copied, error)) (maintenance.Copied, error) {
	shown := r.app.newProgress(label)
	defer shown.Close()
	return do(&maintenance.Copier{From: r.source, To: r.copy, Workers: r.Workers, Progress: func(p maintenance.Progress) {
		shown.Set(p.Conversations, p.Total, fmt.Sprintf("pass %d, %s of %s, %s written", p.Pass, term.Number(p.Conversations), term.Count(p.Total, "conversation"), term.Count(p.Records, "record")))
	}}, ctx)
}

func (r *storeCopy) copyObjects(ctx context.Context, report *copyReport) error {
	if r.objCopy == nil {
		return nil
	}
	shown := r.app.newProgress("objects")
	defer shown.Close()
	copied, err := maintenance.CopyObjects(ctx, r.objects, r.objCopy, func(objects, bytes int64) {
		shown.Set(objects, objects, fmt.Sprintf("%s, %s", term.Count(objects, "object"), term.Size(bytes)))
	})
	report.Objects += copied
	return err
}

func (r *storeCopy) print(report *copyReport) {
	a := r.app
	took := time.Duration(report.Seconds * float64(time.Second)).Round(time.Millisecond)
	all := fmt.Sprintf("%s, %s", term.Count(report.Conversations, "conversation"), term.Count(report.Records, "record"))
	if report.Verified {
		a.print("%s both have the same %s (%s)", a.paint.Green("✔"), all, took)
		a.print("sha256 %s", report.FromSHA256)
		return
	}
	a.print("%s copied %s to %s", a.paint.Green("✔"), report.From, report.To)
	a.print("%s, %s, %s; %s written, %s removed (%s, pass %d found no difference)", all, term.Count(report.Blobs, "envelope"), term.Count(report.Keys, "key"),
		term.Count(report.Written, "record"), term.Count(report.Removed, "conversation"), took, report.Passes)
	if r.objCopy != nil {
		a.print("%s copied to %s", term.Count(report.Objects, "object"), r.ObjectsTo)
	}
	a.print("sha256 of the source %s", report.FromSHA256)
	a.print("sha256 of the copy   %s", report.ToSHA256)
	r.printLastStep()
}

// printLastStep says how to complete a move.
func (r *storeCopy) printLastStep() {
	setting := "store.url (CONTINUO_STORE_URL)"
	if r.to.URL == "" {
		setting = "store.path (CONTINUO_STORE_PATH)"
	}
	r.app.note("To move there permanently: stop the programs that write to %s, run this command once more, set %s to the new store, and start them.", storeText(r.from), setting)
	if r.objCopy != nil {
		r.app.note("Set objects.location to %s as well.", r.ObjectsTo)
	} else {
		r.app.note("Objects (large outputs, attachments, archives) stay where they are: objects.location must name the same location as before, or give --objects-to.")
	}
}
